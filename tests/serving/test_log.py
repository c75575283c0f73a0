"""The log: what happened to whom, as lines or as JSON; what was said only if asked for."""

import json
import logging
from collections.abc import Iterator

import pytest

from nearfuture.runtime import Dispatcher
from nearfuture.serving.limits import Limits, Settings
from nearfuture.serving.log import configure
from tests.serving.served import running, said, stream

SPEECH = said("flite-slt-720")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("nearfuture", "uvicorn")]
    before = [(one.handlers, one.propagate, one.level) for one in loggers]
    yield
    for one, (handlers, propagate, level) in zip(loggers, before, strict=True):
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


@pytest.mark.parametrize("asked", [False, True])
def test_text_is_logged_only_if_asked_for(
    engine: Dispatcher, capsys: pytest.CaptureFixture[str], asked: bool
) -> None:
    configure("json")
    settings = Settings(log_text=asked, limits=Limits(drain_s=0.1))
    with running(engine, settings=settings) as served:
        text = stream(served, SPEECH)[-1]["committed"]
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    messages = [line["message"] for line in lines]
    assert text
    assert messages[0] == "stream opened"
    assert "stream closed" in messages
    assert ("utterance" in messages) is asked
    assert any(text in json.dumps(line) for line in lines) is asked
    closed = lines[messages.index("stream closed")]
    assert closed["stream"] == lines[0]["stream"] == 1
    assert closed["heard_s"] == round(len(SPEECH) / 8000, 3)
    assert closed["finished"] is True
    assert closed["final_ms"] > 0


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure("text")
    logging.getLogger("nearfuture.serving").info("hello", extra={"fields": {"who": "you"}})
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("nearfuture.serving").exception("oh")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("info    hello  who='you'")
    assert lines[-1] == "ValueError: no"
