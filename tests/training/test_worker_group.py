"""How a training is asked to stop, and how it can be ended where it does not hear."""

import signal
import subprocess
import sys

import pytest

from nearfuture.training.worker_group import graceful_interrupt
from tests.patience import PATIENCE_S

HANGING = """
import ctypes
from nearfuture.training.worker_group import graceful_interrupt

with graceful_interrupt(lambda: None):
    print("ready", flush=True)
    mutex, c = ctypes.create_string_buffer(128), ctypes.CDLL(None)
    c.pthread_mutex_lock(mutex)
    c.pthread_mutex_lock(mutex)  # for ever, and no signal gets through to Python
"""


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_the_third_signal_ends_what_hangs(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE) as hanging:
        try:
            assert hanging.stdout is not None
            assert hanging.stdout.readline() == b"ready\n"
            for _ in range(2):
                hanging.send_signal(number)
                with pytest.raises(subprocess.TimeoutExpired):
                    hanging.wait(timeout=0.5)
            hanging.send_signal(number)
            assert hanging.wait(timeout=PATIENCE_S) == 130
        finally:
            hanging.kill()


def test_signals_are_requests_and_handlers_come_back() -> None:
    told: list[None] = []
    before = signal.getsignal(signal.SIGINT)
    with graceful_interrupt(lambda: told.append(None)) as stop:
        assert not stop()
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1
    assert told == []
