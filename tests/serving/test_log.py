"""The log: what happened to whom, as lines or as JSON; what was said only if asked for."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Literal

import pytest

from nearfuture.runtime import Dispatcher
from nearfuture.serving.limits import ServerLimits
from nearfuture.serving.log import OncePerSecond, configure
from nearfuture.serving.settings import ServerSettings
from tests.serving.served import hello, running, said, stream, until_the_end

SPEECH = said("flite-slt-720")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("nearfuture", "uvicorn", "asyncio")]
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
    settings = ServerSettings(log_text=asked, limits=ServerLimits(drain_s=0.1))
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
    assert closed["audio_s"] == round(len(SPEECH) / 8000, 3)
    assert closed["complete"] is True
    assert closed["final_ms"] > 0


def test_who_came_from_where_and_who_was_refused(
    engine: Dispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("json")
    settings = ServerSettings(api_key="k", limits=ServerLimits(drain_s=0.1))
    bearer = {"Authorization": "Bearer k"}
    with running(engine, settings=settings) as served:
        assert served.get("/a%0Ab")[0] == 401
        with served.connect(additional_headers=bearer | {"X-Forwarded-For": "192.0.2.7"}) as client:
            hello(client)
            client.send("nonsense")
            until_the_end(client)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    by_code = {line["code"]: line for line in lines if line["message"] == "refused"}
    assert by_code["unauthorized"]["client"].startswith("127.0.0.1:")
    assert by_code["unauthorized"]["path"] == "/a\nb"
    assert by_code["unauthorized"]["port"] == served.port
    assert by_code["bad_message"]["client"] == "192.0.2.7:0"  # the proxy on this machine says so
    for message in ("stream opened", "stream closed"):
        (line,) = (line for line in lines if line["message"] == message)
        assert line["client"] == "192.0.2.7:0"


def test_a_warning_is_one_line_a_second_and_says_how_many_there_were(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure("json")
    logger, now = logging.getLogger("nearfuture.serving"), 0.0
    (handler,) = logging.getLogger("nearfuture").handlers
    handler.filters = [OncePerSecond(lambda: now)]
    for tick in range(3 * 1024):
        now = tick / 1024
        logger.warning("no descriptors for %s", tick)
        logging.getLogger("asyncio").error("socket.accept() out of system resource")
        logger.info("refused", extra={"fields": {"code": "busy" if tick % 2 else "unauthorized"}})
        if tick % 1024 == 0:
            logger.info("stream opened")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    told: dict[str, list[int]] = {}
    for line in lines:
        told.setdefault(line.get("code", line["message"][:6]), []).append(line.get("more", 0))
    assert told == {
        "no des": [0, 1023, 1023],
        "socket": [0, 1023, 1023],
        "unauthorized": [0, 511, 511],
        "busy": [0, 511, 511],
        "stream": [0, 0, 0],
    }


def test_kinds_of_warnings_do_not_pile_up() -> None:
    once = OncePerSecond(lambda: 0.0)
    for number in range(10_000):
        record = logging.LogRecord("x", logging.WARNING, "", 0, f"kind {number}", (), None)
        assert once.filter(record)
    assert len(once._last) == 256


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_client_writes_no_lines_and_no_colours_into_the_log(
    capsys: pytest.CaptureFixture[str], style: Literal["text", "json"]
) -> None:
    configure(style)
    evil = "/a\n2026 forged\r\x1b[31m\x9b2J\u2028\u202e\x00\ud800 한글"
    logging.getLogger("nearfuture.serving").info(f"path {evil}", extra={"fields": {"path": evil}})
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    assert "한글" in err or style == "json"


def test_a_log_that_cannot_be_written_makes_no_noise(capsys: pytest.CaptureFixture[str]) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    configure("text")
    (handler,) = logging.getLogger("nearfuture").handlers
    assert isinstance(handler, logging.StreamHandler)
    closed = io.StringIO()
    closed.close()
    for target in (Full(), closed):
        handler.setStream(target)
        logging.getLogger("nearfuture.serving").info("hello")
    assert capsys.readouterr().err == ""


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
