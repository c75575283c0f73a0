"""A dispatcher knows its load, and says no to new streams before old ones suffer."""

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from nearfuture.error import NearfutureError
from nearfuture.runtime import Bundle, Busy, Dispatcher
from nearfuture.runtime.scheduler.load import Load
from nearfuture.runtime.scheduler.stats import Meter, RoundStats, latency_percentiles
from tests.runtime.dispatching import Listener, gated

SILENCE = np.zeros(3000, np.float32)


@pytest.fixture(scope="module")
def bundle(bundle_folder: Path) -> Bundle:
    return Bundle.open(bundle_folder)


@pytest.fixture
def dispatcher(bundle: Bundle) -> Iterator[Dispatcher]:
    """Of a machine on which a round takes 5 ms and 0.25 ms a stream, whatever this one does."""
    with Dispatcher(bundle, threads=1, max_streams=128) as made:
        made._queue._load = Load([1, 128], [0.00525, 0.037], quantum_s=0.04)
        yield made


def test_streams_are_let_in_up_to_the_limit_of_the_load(dispatcher: Dispatcher) -> None:
    # 0.8 · 40 ms = 32 ms = 5 ms + 108 · 0.25 ms
    streams = [dispatcher.open(on_event=print) for _ in range(108)]
    with pytest.raises(Busy, match=r"108 streams are open, .* load to 0\.81, .* 0\.80") as told:
        dispatcher.open(on_event=print)
    assert isinstance(told.value, NearfutureError)
    assert (told.value.streams, told.value.limit) == (108, 0.8)
    assert told.value.load == pytest.approx((5 + 109 * 0.25) / 40)
    stats = dispatcher.stats()
    assert stats.load == pytest.approx(0.8)
    assert stats.load_limit == 0.8
    assert (stats.streams, stats.opened, stats.refused) == (108, 108, 1)
    streams[7].close()
    dispatcher.open(on_event=print)


def test_a_machine_that_has_become_slow_lets_fewer_in(dispatcher: Dispatcher) -> None:
    for _ in range(50):
        dispatcher._queue._load.record(1, 2 * 0.00525, now=perf_counter())
    for _ in range(44):  # 2 · (5 + 0.25 · 44) = 32
        dispatcher.open(on_event=print)
    with pytest.raises(Busy):
        dispatcher.open(on_event=print)


def test_no_more_than_most_streams(bundle: Bundle) -> None:
    with Dispatcher(bundle, threads=1, max_streams=3, max_load=1e6) as dispatcher:
        for _ in range(3):
            dispatcher.open(on_event=print)
        with pytest.raises(Busy, match="3 streams are open, the most there may be"):
            dispatcher.open(on_event=print)


def test_one_stream_is_let_in_whatever_the_load(bundle: Bundle) -> None:
    with Dispatcher(bundle, threads=1, max_streams=3, max_load=1e-9) as dispatcher:
        dispatcher.open(on_event=print)
        with pytest.raises(Busy, match="load"):
            dispatcher.open(on_event=print)


def test_rounds_count_in_the_load_for_some_seconds_only() -> None:
    load = Load([1, 10], [0.01, 0.02], quantum_s=0.04)
    assert load.of(10) == 0.5
    load.record(10, 0.06, now=100.0)
    load.record(10, 0.02, now=101.0)
    assert load.of(10, now=101.0) == 1.0
    assert load.of(1, now=101.0) == 0.5
    assert load.of(10, now=105.5) == 0.5  # the first is forgotten
    assert load.of(10, now=110.0) == 0.5


def test_tails_that_take_their_time_make_a_machine_no_slower() -> None:
    load = Load([1, 10], [0.01, 0.02], quantum_s=0.04, tails=([1, 10], [0.005, 0.02]))
    load.record(10, 0.02, now=1.0)
    for _ in range(20):
        load.record(0, 0.005, now=1.0, tails=1)
        load.record(1, 0.03, now=1.0, tails=10)
    assert load.of(10, now=1.0) == pytest.approx(0.5)
    for _ in range(2000):
        load.record(0, 0.01, now=1.0, tails=1)
    assert load.of(10, now=1.0) == pytest.approx(1.0)


def test_streams_that_say_nothing_are_no_load_and_no_batch(bundle: Bundle) -> None:
    """Each is a round with a tail only."""
    with Dispatcher(bundle, threads=1, max_streams=32) as dispatcher:
        for _ in range(20):
            listener = Listener()
            listener.open(dispatcher).finish()
            listener.wait()
        stats = dispatcher.stats()
    assert (stats.rounds, stats.batch_sizes, stats.closed) == (0, {}, 20)
    assert all(expected_s > 0 for _, expected_s, _ in dispatcher._queue._load._rounds)


def test_a_load_keeps_bounded_memory() -> None:
    load = Load([1], [0.01], quantum_s=0.04)
    for i in range(10_000):
        load.record(1, 0.01, now=i / 1000)
    assert len(load._rounds) < 1000


def test_a_meter_keeps_bounded_memory() -> None:
    meter = Meter()
    for i in range(20_000):
        meter.record(RoundStats(steps=1, compute_ms=[float(i)], final_ms=[float(i)]))
    assert latency_percentiles(*meter.windows())["compute_p50_ms"] == pytest.approx(
        20_000 - 2048, abs=1
    )


def test_stats_say_what_happened(dispatcher: Dispatcher) -> None:
    listeners = [Listener() for _ in range(6)]
    with gated(dispatcher) as gate:
        streams = [listener.open(dispatcher) for listener in listeners]
        streams[0].accept(SILENCE[:120])
        gate.begun()
        for stream in streams[1:]:
            stream.accept(SILENCE)
        waiting = dispatcher.stats()
        assert waiting.behind_s > 0
    for stream, listener in zip(streams, listeners, strict=True):
        stream.finish()
        listener.wait()
    dispatcher.close()
    stats = dispatcher.stats()
    assert stats.behind_s == 0
    assert (stats.opened, stats.closed, stats.streams) == (6, 6, 0)
    assert sum(stats.batch_sizes.values()) == stats.rounds
    # The first stream's short quantum; of the others one each, (3000 - 120) / 320 more.
    steps = sum(size * count for size, count in stats.batch_sizes.items())
    assert steps == 1 + 5 * (1 + 9)
    assert stats.batch_sizes[5] >= 9
    assert stats.compute_p50_ms is not None
    assert stats.final_p98_ms is not None
    assert 0 < stats.compute_p50_ms <= (stats.compute_p98_ms or 0)
    assert {"gather", "run", "scatter", "decode", "deliver", "finish"} <= set(stats.spent_s)
    assert all(seconds >= 0 for seconds in stats.spent_s.values())


def test_streams_that_fall_behind_are_seen_during_a_round(dispatcher: Dispatcher) -> None:
    """They are in the turn, and in no queue: what is computed counts, and what waits behind it."""
    with gated(dispatcher) as gate:
        listener = Listener()
        stream = listener.open(dispatcher)
        stream.accept(SILENCE)
        gate.begun()
        first = dispatcher.stats().behind_s
        gate.pass_one()
        gate.begun()
        assert 0 < first < dispatcher.stats().behind_s
        gate.lift()
        stream.finish()
        listener.wait()
    assert dispatcher.stats().behind_s == 0


def test_percentiles_are_found_without_the_engines_lock(
    dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And who only asks whether there is room needs none."""
    held = []
    percentile = np.percentile

    def noted(*arguments: Any) -> Any:
        held.append(dispatcher._queue._changed._is_owned())  # type: ignore[attr-defined]
        return percentile(*arguments)

    monkeypatch.setattr(np, "percentile", noted)
    listener = Listener()
    stream = listener.open(dispatcher)
    stream.accept(SILENCE)
    stream.finish()
    listener.wait()
    dispatcher.open(on_event=print)
    here = dispatcher.occupancy()
    assert held == []
    stats = dispatcher.stats()
    assert held == [False, False]
    assert (here.streams, here.load_limit) == (stats.streams, stats.load_limit) == (1, 0.8)
    assert here.load > 0


def test_a_recording_sent_at_once_is_in_no_latency_of_live_streams(bundle: Bundle) -> None:
    """That it waits for itself says nothing of the server; of what is due, all counts."""
    with Dispatcher(bundle, threads=1, max_streams=4, max_load=1e6) as dispatcher:
        upload, live = Listener(), Listener()
        with gated(dispatcher) as gate:
            stream = upload.open(dispatcher)
            stream.accept(np.zeros(40_000, np.float32))
            stream.finish()
            gate.begun()
            assert dispatcher.stats().behind_s == 0
        upload.wait()
        stats = dispatcher.stats()
        assert len(upload.events) == 126
        assert (stats.compute_p98_ms, stats.final_p98_ms) == (None, None)
        stream = live.open(dispatcher)
        stream.accept(np.zeros(320, np.float32))
        stream.finish()
        live.wait()
    stats = dispatcher.stats()
    assert stats.compute_p98_ms == pytest.approx(live.events[0].compute_ms)
    assert stats.final_p98_ms == pytest.approx(live.events[-1].compute_ms)


def test_the_start_up_measurement_leaves_no_trace(bundle: Bundle) -> None:
    with Dispatcher(bundle, threads=1, max_streams=5) as dispatcher:
        stats = dispatcher.stats()
        assert len(dispatcher._batch.pool._free) == 5
    assert (stats.rounds, stats.opened, stats.closed, stats.batch_sizes) == (0, 0, 0, {})
    assert stats.compute_p50_ms is None
