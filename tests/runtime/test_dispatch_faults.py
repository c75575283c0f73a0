"""One stream's trouble is its own; the engine's is told to all; nothing hangs or is left."""

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from nearfuture.error import NearfutureError, NotStreamable
from nearfuture.runtime import Bundle, Dispatcher, Event, LiveStream, Model
from tests.runtime.dispatching import PATIENCE_S, Listener, alone, assert_same, gated
from tests.waveform import signals

SPEECH = signals()["speech"][:6000]


@pytest.fixture(scope="module")
def bundle(bundle_folder: Path) -> Bundle:
    return Bundle.open(bundle_folder)


@pytest.fixture
def dispatcher(bundle: Bundle) -> Iterator[Dispatcher]:
    with Dispatcher(bundle, threads=1, max_streams=8, max_load=1e6) as made:
        yield made


OTHERS: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _threads_of_other_tests() -> None:
    """Servers that serve a whole session of tests have threads too."""
    OTHERS.clear()
    OTHERS.update(threading.enumerate())


def threads() -> list[str]:
    """The names of ours that this test has started and that still run."""
    mine = set(threading.enumerate()) - OTHERS
    return [thread.name for thread in mine if "nearfuture" in thread.name]


class Trouble(Exception):  # noqa: N818 - no error of ours
    pass


@pytest.mark.parametrize("error", [Trouble("of its own"), SystemExit(3), KeyboardInterrupt()])
def test_a_listener_that_raises_ends_its_own_stream_only(
    dispatcher: Dispatcher, model: Model, error: BaseException
) -> None:
    def deliver(event: Event) -> None:
        if event.audio_ms > 100:
            raise error

    bad, good = Listener(), Listener()
    troubled = dispatcher.open(on_event=deliver, on_error=bad.failed)
    stream = good.open(dispatcher)
    for at in range(0, len(SPEECH), 500):
        stream.accept(SPEECH[at : at + 500])
    troubled.accept(SPEECH)
    bad.wait()
    stream.finish()
    good.wait()
    assert_same(good, alone(model, SPEECH))
    assert troubled.closed
    assert troubled.error is bad.errors[0]
    with pytest.raises(NearfutureError, match="has failed"):
        troubled.accept(SPEECH)
    with pytest.raises(NearfutureError, match="has failed"):
        troubled.finish()
    stats = dispatcher.stats()
    assert (stats.opened, stats.closed, stats.failed, stats.streams) == (2, 2, 1, 0)


def test_a_listener_that_raises_at_the_last_event_fails_too(dispatcher: Dispatcher) -> None:
    def deliver(event: Event) -> None:
        if event.final:
            raise Trouble

    listener = Listener()
    dispatcher.open(on_event=deliver, on_error=listener.failed).finish()
    listener.wait()
    assert isinstance(listener.errors[0], Trouble)
    assert (dispatcher.stats().failed, dispatcher.stats().closed) == (1, 1)


def test_a_handler_of_errors_that_raises_harms_nobody(
    dispatcher: Dispatcher, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    def trouble(_: Any) -> NoReturn:
        raise Trouble

    dispatcher.open(on_event=trouble, on_error=trouble).accept(SPEECH)
    good = Listener()
    stream = good.open(dispatcher)
    stream.accept(SPEECH)
    stream.finish()
    good.wait()
    assert_same(good, alone(model, SPEECH))
    assert "handler of errors" in caplog.text


def test_a_row_the_model_breaks_on_is_its_own_trouble(
    dispatcher: Dispatcher, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = dispatcher._batch.step

    def broken(slots: Any, quanta: Any) -> Any:
        outputs = step(slots, quanta)
        for b, samples in enumerate(quanta):
            if np.all(samples == np.float32(0.125)):
                for log_probs, _ in outputs.values():
                    log_probs[b] = np.nan
        return outputs

    monkeypatch.setattr(dispatcher._batch, "step", broken)
    bad, good = Listener(), Listener()
    with gated(dispatcher):
        bad.open(dispatcher).accept(np.full(2000, 0.125, np.float32))
        stream = good.open(dispatcher)
        stream.accept(SPEECH)
        stream.finish()
    bad.wait()
    good.wait()
    assert "NaN" in str(bad.errors[0])
    assert_same(good, alone(model, SPEECH))


def test_bad_samples_change_nothing(dispatcher: Dispatcher, model: Model) -> None:
    listener = Listener()
    stream = listener.open(dispatcher)
    stream.accept(SPEECH[:1000])
    for bad in (np.array([np.nan]), np.zeros((2, 2)), np.zeros(4, np.int32)):
        with pytest.raises(NearfutureError):
            stream.accept(bad)
    stream.accept(SPEECH[1000:])
    stream.finish()
    listener.wait()
    assert_same(listener, alone(model, SPEECH))


def test_an_engine_that_fails_tells_every_stream(
    dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle, busy = Listener(), Listener()
    waiting = idle.open(dispatcher)

    def broken(*_: Any) -> NoReturn:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(dispatcher._batch.engine, "step", broken)
    busy.open(dispatcher).accept(SPEECH)
    for listener in (idle, busy):
        listener.wait()
        assert "out of memory" in str(listener.errors[0])
    with pytest.raises(NearfutureError, match="out of memory"):
        waiting.accept(SPEECH)
    with pytest.raises(NearfutureError, match="out of memory"):
        dispatcher.open(on_event=print)
    assert dispatcher.stats().failed == 2
    dispatcher.close()
    assert dispatcher.stats().streams == 0


def test_too_much_waiting_audio_is_refused_and_changes_nothing(
    bundle: Bundle, model: Model
) -> None:
    listener, computed = Listener(), threading.Event()

    def on_event(event: Event) -> None:
        listener.deliver(event)
        if stream.waiting_s <= 0.04:
            computed.set()

    with Dispatcher(bundle, threads=1, max_streams=1, max_waiting_s=0.5) as dispatcher:
        with gated(dispatcher) as gate:
            stream = dispatcher.open(
                on_event=on_event,
                on_error=listener.failed,
                on_log_probs=listener.log_probs.append,
            )
            stream.accept(SPEECH[:3600])
            gate.begun()
            with pytest.raises(NearfutureError, match=r"0\.5 s of audio wait .* 0\.1 s more"):
                stream.accept(SPEECH[3600:4400])
            stream.accept(SPEECH[3600:4000])
            with pytest.raises(NearfutureError, match=r"over the 0\.5 s"):
                stream.accept(SPEECH[4000:4001])
        assert computed.wait(PATIENCE_S)  # events say when audio waits no longer
        stream.accept(SPEECH[4000:6000])
        stream.finish()
        listener.wait()
    assert_same(listener, alone(model, SPEECH))


def test_a_stream_ends_once(dispatcher: Dispatcher) -> None:
    finished, closed = Listener(), Listener()
    one, other = finished.open(dispatcher), closed.open(dispatcher)
    one.finish()
    other.close()
    other.close()
    finished.wait()
    one.close()
    for stream in (one, other):
        with pytest.raises(NearfutureError, match="has ended"):
            stream.accept(SPEECH)
        with pytest.raises(NearfutureError, match="has ended"):
            stream.finish()
    assert closed.events == closed.errors == []
    assert dispatcher.stats().closed == 2


def test_close_drains(bundle: Bundle, model: Model) -> None:
    listeners = [Listener() for _ in range(6)]
    dispatcher = Dispatcher(bundle, threads=1, max_streams=8, max_load=1e6)
    streams = [listener.open(dispatcher) for listener in listeners]
    for stream in streams[:5]:
        stream.accept(SPEECH)
    streams[0].finish()
    assert threads() == ["nearfuture-dispatch"]
    dispatcher.close()
    assert threads() == []
    for listener in listeners[:5]:
        assert_same(listener, alone(model, SPEECH))
    assert listeners[5].events[-1].final
    with pytest.raises(NearfutureError, match="no more streams"):
        dispatcher.open(on_event=print)
    with pytest.raises(NearfutureError, match="has ended"):
        streams[1].accept(SPEECH)
    dispatcher.close()


def test_close_without_draining_tells_what_was_lost(bundle: Bundle) -> None:
    listeners = [Listener() for _ in range(3)]
    dispatcher = Dispatcher(bundle, threads=1, max_streams=8, max_load=1e6)
    for listener in listeners:
        listener.open(dispatcher).accept(SPEECH)
    dispatcher.close(drain=False)
    assert threads() == []
    for listener in listeners:
        assert not any(event.final for event in listener.events)
        assert "closed before" in str(listener.errors[0])


def test_a_context_left_by_an_error_does_not_drain(bundle: Bundle) -> None:
    listener = Listener()

    def leave() -> None:
        with Dispatcher(bundle, threads=1, max_streams=1) as dispatcher:
            listener.open(dispatcher).accept(SPEECH)
            raise Trouble

    with pytest.raises(Trouble):
        leave()
    assert listener.errors
    assert threads() == []


def test_closing_from_a_listener_does_not_wait_for_itself(bundle: Bundle) -> None:
    listener = Listener()
    dispatcher = Dispatcher(bundle, threads=1, max_streams=2)

    def deliver(event: Event) -> None:
        listener.events.append(event)
        dispatcher.close(drain=False)

    dispatcher.open(on_event=deliver, on_error=listener.failed).accept(SPEECH)
    listener.wait()
    dispatcher.close()
    assert threads() == []
    assert len(listener.events) == 1


def test_a_listener_may_use_its_stream(dispatcher: Dispatcher, model: Model) -> None:
    listener = Listener()
    streams: list[LiveStream] = []

    def deliver(event: Event) -> None:
        listener.deliver(event)
        if event.audio_ms == 15.0:
            streams[0].accept(SPEECH[120:])
            streams[0].finish()

    streams.append(
        dispatcher.open(
            on_event=deliver, on_error=listener.failed, on_log_probs=listener.log_probs.append
        )
    )
    streams[0].accept(SPEECH[:120])
    listener.wait()
    assert_same(listener, alone(model, SPEECH))


def test_500_streams_that_leave_at_any_moment_leave_nothing(dispatcher: Dispatcher) -> None:
    random = np.random.default_rng(4)
    for _ in range(500):
        stream = Listener().open(dispatcher)
        stream.accept(SPEECH[: random.integers(0, 2000)])
        if random.random() < 0.3:
            stream.finish()
        threading.Event().wait(random.choice([0, 0.0005]))
        stream.close()
    deadline = threading.Event()
    for _ in range(1000):
        if len(dispatcher._batch.pool._free) == 8:
            break
        deadline.wait(0.01)
    assert len(dispatcher._batch.pool._free) == 8
    stats = dispatcher.stats()
    assert (stats.opened, stats.closed, stats.failed) == (500, 500, 0)


def test_a_bidirectional_bundle_is_refused(twin_folder: Path) -> None:
    with pytest.raises(NotStreamable):
        Dispatcher(Bundle.open(twin_folder))
    assert threads() == []


@pytest.mark.parametrize("limit", ["max_streams", "max_waiting_s", "max_load", "threads"])
def test_limits_are_positive(bundle: Bundle, limit: str) -> None:
    with pytest.raises(NearfutureError, match=limit):
        Dispatcher(bundle, **{limit: 0})  # type: ignore[arg-type]


def test_a_budget_no_head_keeps_is_refused(dispatcher: Dispatcher) -> None:
    with pytest.raises(NearfutureError, match="55"):
        dispatcher.open(budget_ms=10, on_event=print)
    assert dispatcher.stats().opened == 0


def run(code: str, bundle_folder: Path) -> subprocess.CompletedProcess[str]:
    head = f"""
        import os, sys, threading, warnings
        import numpy as np
        from nearfuture.error import NearfutureError
        from nearfuture.runtime import Bundle, Dispatcher
        bundle = Bundle.open({str(bundle_folder)!r})
        dispatcher = Dispatcher(bundle, threads=1, max_streams=2)
        stream = dispatcher.open(on_event=lambda event: None)
        stream.accept(np.zeros(40_000, np.float32))
    """
    script = textwrap.dedent(head) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S
    )


def test_a_process_may_exit_in_the_middle(bundle_folder: Path) -> None:
    done = run("print('bye')", bundle_folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


def test_a_listener_that_waits_for_ever_keeps_no_process_alive(bundle_folder: Path) -> None:
    done = run(
        """
        waiting = threading.Event()
        dispatcher.open(on_event=lambda event: waiting.wait()).finish()
        print("bye")
        """,
        bundle_folder,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


def test_a_forked_child_is_reported(bundle_folder: Path) -> None:
    done = run(
        """
        warnings.simplefilter("ignore")
        child = os.fork()
        if child == 0:
            for use in (
                lambda: stream.accept(np.zeros(10, np.float32)),
                lambda: stream.finish(),
                lambda: dispatcher.open(on_event=print),
                lambda: dispatcher.stats(),
            ):
                try:
                    use()
                except NearfutureError as error:
                    assert "fork" in str(error)
                else:
                    os._exit(1)
            stream.close()
            dispatcher.close()
            os._exit(0)  # as multiprocessing does
        assert os.waitpid(child, 0)[1] == 0
        """,
        bundle_folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
