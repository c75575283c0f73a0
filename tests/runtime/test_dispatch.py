"""Many streams through one engine: each says what it says alone, bit for bit, and none waits."""

import gc
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.runtime import Bundle, Dispatcher, Event, LiveStream, Model, load
from nearfuture.runtime.scheduler.rounds import MAX_TAILS
from tests.chain import cuts
from tests.runtime.dispatching import (
    Gate,
    Listener,
    alone,
    assert_same,
    assert_same_log_probs,
    gated,
)
from tests.waveform import signals

SIGNALS = list(signals().values())
SPEECH = signals()["speech"]
RATES = (8000, 16_000, 44_100, 6_000)


@pytest.fixture(scope="module")
def bundle(bundle_folder: Path) -> Bundle:
    return Bundle.open(bundle_folder)


@pytest.fixture
def dispatcher(bundle: Bundle) -> Iterator[Dispatcher]:
    with Dispatcher(bundle, threads=1, max_streams=32, max_load=1e6) as made:
        yield made


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_32_random_streams_are_each_as_alone(
    bundle: Bundle, bundle_folder: Path, threads: int
) -> None:
    random = np.random.default_rng(threads)
    budgets = [None, *sorted(x.worst_ms for x in load(bundle_folder).budgets.values())]
    plans = []
    for _ in range(32):
        rate = int(random.choice(RATES))
        budget = budgets[random.integers(len(budgets))]
        budget = None if budget is None else budget + 5.0  # for the resampler
        signal = SIGNALS[random.integers(len(SIGNALS))]
        samples = signal[: random.integers(0, 4500)]
        plans.append((rate, budget, samples, cuts(len(samples), random), random.integers(0, 20)))

    def feed(stream: LiveStream, samples: np.ndarray, sizes: list[int], pause_ms: int) -> None:
        at = 0
        for size in sizes:
            stream.accept(samples[at : at + size])
            at += size
            if size > 1000:
                idle.wait(pause_ms / 1000)
        stream.finish()

    idle = threading.Event()
    listeners = [Listener() for _ in plans]
    with (
        Dispatcher(bundle, threads=threads, max_streams=32, max_load=1e6) as dispatcher,
        gated(dispatcher) as gate,
    ):
        feeders = []
        for listener, (rate, budget, samples, sizes, pause_ms) in zip(
            listeners, plans, strict=True
        ):
            stream = listener.open(dispatcher, rate=rate, budget_ms=budget)
            feeder = threading.Thread(target=feed, args=(stream, samples, sizes, pause_ms))
            feeder.start()
            feeders.append(feeder)
        for feeder in feeders[:20]:  # these wait together, on however fast a machine
            feeder.join()
        gate.lift()
        for listener, feeder in zip(listeners, feeders, strict=True):
            feeder.join()
            listener.wait()
        batch_sizes = dispatcher.stats().batch_sizes
    assert max(batch_sizes) > 8, "the streams never met"
    for number, (listener, plan) in enumerate(zip(listeners, plans, strict=True)):
        model = load(bundle_folder, budget_ms=plan[1])
        assert_same(listener, alone(model, plan[2], plan[0]), f"stream {number}: {plan[:2]}")


ACTIONS = st.one_of(
    st.tuples(st.just("accept"), st.integers(0, 7), st.sampled_from([1, 119, 120, 320, 333, 1300])),
    st.tuples(st.sampled_from(["finish", "close", "open"]), st.integers(0, 7), st.just(0)),
    st.tuples(st.just("round"), st.just(0), st.just(0)),
)


@settings(max_examples=40, deadline=None)
@given(actions=st.lists(ACTIONS, max_size=60))
def test_any_schedule_leaves_each_stream_as_alone(
    shared: Dispatcher, model: Model, actions: list[tuple[str, int, int]]
) -> None:
    streams: dict[int, LiveStream] = {}
    given: dict[int, list[np.ndarray]] = {}
    listeners: dict[int, Listener] = {}
    heard: list[tuple[Listener, np.ndarray]] = []

    def end(which: int, *, finish: bool) -> None:
        stream, samples = streams.pop(which), np.concatenate(given.pop(which))
        if finish:
            stream.finish()
            heard.append((listeners[which], samples))
        else:
            stream.close()

    with gated(shared) as gate:
        for action, which, size in actions:
            if action == "round":
                gate.pass_one()
            elif action == "open" and which not in streams:
                listeners[which] = Listener()
                streams[which] = listeners[which].open(shared)
                given[which] = [np.zeros(0, np.float32)]
            elif which not in streams:
                continue
            elif action == "accept":
                chunk = SIGNALS[which][sum(map(len, given[which])) :][:size]
                streams[which].accept(chunk)
                given[which].append(chunk)
            else:
                end(which, finish=action == "finish")
        for which in list(streams):
            end(which, finish=True)
        gate.lift()
        for listener, samples in heard:
            listener.wait()
            assert_same(listener, alone(model, samples))
    assert shared.stats().streams == 0


@pytest.fixture(scope="module")
def shared(bundle: Bundle) -> Iterator[Dispatcher]:
    with Dispatcher(bundle, threads=1, max_streams=8, max_load=1e6) as made:
        yield made


def test_every_length_modulo_the_quantum_ends_as_alone(
    dispatcher: Dispatcher, model: Model
) -> None:
    for extra in range(0, 320, 10):
        listener = Listener()
        stream = listener.open(dispatcher)
        stream.accept(SPEECH[: 1300 + extra])
        stream.finish()
        listener.wait()
        assert_same(listener, alone(model, SPEECH[: 1300 + extra]), f"{extra}")


def test_the_comparison_can_fail(dispatcher: Dispatcher, model: Model) -> None:
    listener = Listener()
    stream = listener.open(dispatcher)
    stream.accept(SPEECH[:8000])
    stream.finish()
    listener.wait()
    other = alone(model, SPEECH[:8000] + np.float32(1e-4))
    with pytest.raises(AssertionError):
        assert_same_log_probs(listener, other)


def test_a_stream_that_received_nothing_ends(dispatcher: Dispatcher, model: Model) -> None:
    listener = Listener()
    listener.open(dispatcher).finish()
    listener.wait()
    assert_same(listener, alone(model, SPEECH[:0]))


def test_a_stream_keeps_the_promise_of_stream(dispatcher: Dispatcher, model: Model) -> None:
    for rate in RATES:
        live, single = Listener().open(dispatcher, rate=rate), model.stream(rate)
        assert (live.latency, live.budget) == (single.latency, single.budget)


def test_nothing_waits_for_company(dispatcher: Dispatcher) -> None:
    others = [Listener().open(dispatcher) for _ in range(5)]
    for other in others:
        other.accept(SPEECH[:100])  # less than a quantum
    listener = Listener()
    stream = listener.open(dispatcher)
    stream.accept(SPEECH[:760])
    stream.finish()
    listener.wait()
    assert [event.audio_ms for event in listener.events] == [15.0, 55.0, 95.0, 95.0]
    assert set(dispatcher.stats().batch_sizes) <= {0, 1}


def test_a_round_takes_every_stream_that_is_ready_and_one_quantum_of_each(
    dispatcher: Dispatcher,
) -> None:
    with gated(dispatcher) as gate:
        greedy, *others = [Listener() for _ in range(5)]
        backlog = greedy.open(dispatcher)
        backlog.accept(SPEECH[: 120 + 9 * 320])
        gate.begun()
        for other in others:
            other.open(dispatcher).accept(SPEECH[:120])
        for _ in range(3):
            gate.pass_one()
            gate.begun()
        # Round 2 has everybody, and he who has nine more quanta gets one of them a round.
        assert [sorted(sizes) for sizes in gate.rounds[:4]] == [
            [120],
            [120, 120, 120, 120, 320],
            [320],
            [320],
        ]
        assert all(len(other.events) == 1 for other in others)


def test_a_stream_that_ends_during_a_round_is_finished_with_it(dispatcher: Dispatcher) -> None:
    with gated(dispatcher) as gate:
        listener = Listener()
        stream = listener.open(dispatcher)
        stream.accept(SPEECH[:120])
        gate.begun()
        stream.finish()
        gate.pass_one()
        listener.wait()
    assert dispatcher.stats().rounds == 1


def test_streams_that_end_together_are_finished_together_but_not_all_at_once(
    dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    finish = dispatcher._batch.finish
    monkeypatch.setattr(
        dispatcher._batch, "finish", lambda slots: sizes.append(len(slots)) or finish(slots)
    )
    listeners = [Listener() for _ in range(MAX_TAILS + 7)]
    with gated(dispatcher) as gate:
        going_on = Listener()
        stream = going_on.open(dispatcher)
        stream.accept(SPEECH[: 120 + 2 * 320])
        gate.begun()
        for listener in listeners:
            listener.open(dispatcher).finish()
        for _ in range(2):
            gate.pass_one()
            gate.begun()
        # Those that end and the one that goes on are served by turns.
        assert sizes == [MAX_TAILS]
        assert len(going_on.events) == 2
        assert [listener.over.is_set() for listener in listeners] == [
            *[True] * MAX_TAILS,
            *[False] * 7,
        ]
    for listener in listeners:
        listener.wait()
    assert sizes == [MAX_TAILS, 7]


def test_events_say_how_long_they_took_and_how_far_they_are(dispatcher: Dispatcher) -> None:
    listener = Listener()
    stream = listener.open(dispatcher)
    stream.accept(SPEECH)
    stream.finish()
    listener.wait()
    took = [event.compute_ms for event in listener.events[:-1]]
    assert took == sorted(took)  # they were complete at once, and come one after another
    assert took[0] > 0
    frames = [event.frames for event in listener.events]
    assert frames == sorted(frames)
    assert frames[-1] == sum(len(part[19]) for part in listener.log_probs)


def test_waiting_s_is_audio_accepted_and_not_yet_computed(dispatcher: Dispatcher) -> None:
    listener = Listener()
    with gated(dispatcher) as gate:
        stream = listener.open(dispatcher, rate=16_000)
        assert stream.waiting_s == 0
        stream.accept(np.zeros(16_000, np.float32))
        gate.begun()
        assert stream.waiting_s == 1.0
    stream.finish()
    listener.wait()
    assert stream.waiting_s == 0
    assert stream.closed


def test_a_place_is_free_at_once_when_its_stream_closes(bundle: Bundle, model: Model) -> None:
    """Also while a batch has it, and the next stream there starts afresh."""
    with Dispatcher(bundle, threads=1, max_streams=1, max_load=1e6) as dispatcher:
        with gated(dispatcher) as gate:
            first = Listener()
            stream = first.open(dispatcher)
            stream.accept(SPEECH[:5000])
            gate.begun()
            stream.close()
            second = Listener()
            stream = second.open(dispatcher)
            stream.accept(SPEECH[:3000])
            stream.finish()
        second.wait()
        assert first.events == []
        assert_same(second, alone(model, SPEECH[:3000]))
        assert len(dispatcher._batch.pool._free) == 1


def test_who_hears_the_last_event_finds_the_place_free(bundle: Bundle) -> None:
    with Dispatcher(bundle, threads=1, max_streams=1) as dispatcher:
        first, second = Listener(), Listener()

        def deliver(event: Event) -> None:
            if event.final:
                second.open(dispatcher).finish()
            first.deliver(event)

        dispatcher.open(on_event=deliver, on_error=first.failed).finish()
        first.wait()
        second.wait()
        assert first.errors == second.errors == []


def test_two_callers_of_one_stream_lose_nothing(dispatcher: Dispatcher) -> None:
    listener = Listener()
    stream = listener.open(dispatcher, rate=44_100)

    def feed() -> None:
        for _ in range(50):
            stream.accept(np.zeros(441, np.float32))

    feeders = [threading.Thread(target=feed) for _ in range(4)]
    for feeder in feeders:
        feeder.start()
    for feeder in feeders:
        feeder.join()
    stream.finish()
    listener.wait()
    assert listener.events[-1].audio_ms == 4 * 50 * 10


def test_hundreds_of_streams_leave_memory_flat(bundle: Bundle) -> None:
    with Dispatcher(bundle, threads=1, max_streams=4, max_load=1e6) as dispatcher:

        def serve(streams: int) -> int:
            for number in range(streams):
                listener = Listener()
                stream = listener.open(dispatcher)
                stream.accept(SPEECH[:200])
                if number % 3:
                    stream.finish()
                    listener.wait()
                else:
                    stream.close()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        serve(50)
        tracemalloc.start()
        try:
            before = serve(100)
            after = serve(400)
        finally:
            tracemalloc.stop()
        stats = dispatcher.stats()
    assert (stats.opened, stats.closed, stats.streams) == (550, 550, 0)
    assert len(dispatcher._batch.pool._free) == 4
    # The window of latencies fills up meanwhile: 32 bytes a float and its place.
    assert after - before < 400 * 3 * 40


def test_a_gate_that_holds_nothing_changes_nothing(dispatcher: Dispatcher, model: Model) -> None:
    gate = Gate(dispatcher)
    gate.lift()
    listener = Listener()
    stream = listener.open(dispatcher)
    stream.accept(SPEECH[:2000])
    stream.finish()
    listener.wait()
    assert_same(listener, alone(model, SPEECH[:2000]))
