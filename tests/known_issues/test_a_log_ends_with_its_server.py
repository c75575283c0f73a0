"""`serve` kept its log after it had ended: later lines went to a stream that was closed."""

import io
import logging
import sys

import pytest

from nearfuture.cli import main

NAMES = ("nearfuture", "uvicorn")


def test_a_server_that_fails_leaves_the_log_as_it_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [
        (list(one.handlers), one.propagate, one.level) for one in map(logging.getLogger, NAMES)
    ]
    interval = sys.getswitchinterval()
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(SystemExit):
        main(["serve", "--port", "0", "--tls-cert", "a.pem", "--tls-key", "b.pem"])
    assert "cannot be used" in stream.getvalue()
    stream.close()
    monkeypatch.undo()
    logging.getLogger("nearfuture.serving").warning("a line of somebody else")
    assert "Logging error" not in capsys.readouterr().err
    assert before == [
        (list(one.handlers), one.propagate, one.level) for one in map(logging.getLogger, NAMES)
    ]
    assert sys.getswitchinterval() == interval
