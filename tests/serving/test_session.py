"""One live stream as protocols use it: order, back-pressure, slow readers, any end at any time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from nearfuture.decoding import Endpoint
from nearfuture.error import NearfutureError
from nearfuture.runtime import Busy, Dispatcher, Model
from nearfuture.serving.errors import RequestError
from nearfuture.serving.limits import ServerLimits
from nearfuture.serving.session import Session, SessionOptions, Update
from nearfuture.text import join_utterances
from tests.runtime.dispatching import gated
from tests.serving.served import dispatcher, said

SPEECH = said("flite-slt-720", "flite-rms-991")


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 120))


async def ended(session: Session) -> list[Update]:
    return [update async for update in session.updates()]


def text(updates: list[Update]) -> str:
    return join_utterances((each.committed, each.continues) for each in updates if each.final)


def test_a_reader_who_comes_late_finds_every_end_and_little_else(
    engine: Dispatcher, offline: Model
) -> None:
    async def main() -> None:
        async with Session(engine, SessionOptions(budget_ms=400, endpoint=Endpoint())) as session:
            await session.accept(SPEECH)
            await session.finish()
            while engine.stats().streams:
                await asyncio.sleep(0.01)
            updates = await ended(session)
        assert [update.final for update in updates] == [True, True]
        assert text(updates) == offline.transcribe(SPEECH).text

    run(main)


def test_a_mid_word_border_says_so(engine: Dispatcher, offline: Model) -> None:
    async def main() -> None:
        rule = Endpoint(silence_ms=120, longest_ms=120)
        async with Session(engine, SessionOptions(budget_ms=400, endpoint=rule)) as session:
            await session.accept(SPEECH)
            await session.finish()
            updates = await ended(session)
        assert any(update.continues for update in updates)
        assert text(updates) == offline.transcribe(SPEECH).text

    run(main)


def test_hearing_waits_while_too_much_waits(offline: Model) -> None:
    async def main() -> None:
        limits = ServerLimits(max_waiting_s=1.0)
        with dispatcher(max_waiting_s=1.0) as engine:
            async with Session(engine, SessionOptions(budget_ms=400, limits=limits)) as session:
                hearing = asyncio.create_task(session.accept(SPEECH))
                most = 0.0
                while not hearing.done():
                    most = max(most, session.waiting_s)
                    await asyncio.sleep(0)
                await hearing
                await session.finish()
                assert text(await ended(session)) == offline.transcribe(SPEECH).text
        assert 0 < most <= 1.0

    run(main)


def test_waiting_for_room_does_not_poll(offline: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        looks = 0
        limits = ServerLimits(max_waiting_s=1.0)
        with dispatcher(max_waiting_s=1.0) as engine:
            async with Session(engine, SessionOptions(budget_ms=400, limits=limits)) as session:
                refuse_if_over = session._refuse_if_over

                def counted() -> None:
                    nonlocal looks
                    looks += 1
                    refuse_if_over()

                monkeypatch.setattr(session, "_refuse_if_over", counted)
                with gated(engine) as gate:
                    hearing = asyncio.create_task(session.accept(SPEECH))
                    while session.waiting_s < 0.8:
                        await asyncio.sleep(0)
                    gate.begun()
                    await asyncio.sleep(0.1)
                    before = looks
                    await asyncio.sleep(0.3)
                    assert (looks, hearing.done()) == (before, False)
                await hearing
                assert looks > before
                await session.finish()
                assert text(await ended(session)) == offline.transcribe(SPEECH).text

    run(main)


def test_hearing_waits_for_a_reader_with_too_many_ends_to_read(
    engine: Dispatcher, offline: Model
) -> None:
    async def main() -> None:
        speech = said(*["flite-slt-720"] * 6)
        limits = ServerLimits(max_unread=2, max_waiting_s=2.0)
        async with Session(
            engine, SessionOptions(budget_ms=400, endpoint=Endpoint(), limits=limits)
        ) as session:
            hearing = asyncio.create_task(session.accept(speech))
            heard_s = -1.0
            while session.received_s > heard_s or session.waiting_s > 1.0:  # until it stands still
                heard_s = session.received_s
                await asyncio.sleep(0.5)
            assert not hearing.done()
            assert session.received_s < len(speech) / 8000 - 2
            reading = asyncio.create_task(ended(session))
            await hearing
            await session.finish()
            assert text(await reading) == offline.transcribe(speech).text

    run(main)


def test_a_flush_waits_for_a_reader_with_too_many_ends_to_read(engine: Dispatcher) -> None:
    async def main() -> None:
        async with Session(engine, SessionOptions(limits=ServerLimits(max_unread=2))) as session:

            async def flush() -> None:
                for _ in range(20):
                    await session.flush()
                await session.finish()

            flushing = asyncio.create_task(flush())
            await asyncio.sleep(1.0)
            assert session._events.ends <= 3
            assert not flushing.done()
            updates = await ended(session)
            await flushing
        assert sum(update.final for update in updates) == 21

    run(main)


@pytest.mark.parametrize("flushed", [False, True])
def test_what_comes_after_a_cut_is_dropped(
    engine: Dispatcher, offline: Model, flushed: bool
) -> None:
    async def main() -> None:
        async with Session(engine, SessionOptions(budget_ms=400)) as session:
            await session.accept(SPEECH[:9001])
            flushing = asyncio.create_task(session.flush() if flushed else asyncio.sleep(0))
            await asyncio.sleep(0)
            session.interrupt()
            await flushing
            await session.accept(SPEECH)
            await session.flush()
            await session.finish()
            session.interrupt()
            assert session.received_s == 9001 / 8000
            updates = await ended(session)
            await session.accept(SPEECH)
        assert text(updates) == offline.transcribe(SPEECH[:9001]).text
        assert [update.ended for update in updates if update.final] == [True]

    run(main)


def test_a_cut_right_behind_a_flush_still_ends_the_stream(engine: Dispatcher) -> None:
    async def main() -> None:
        async with Session(engine) as session:
            await session.accept(SPEECH[:9001])
            await session.flush()
            session.interrupt()
            updates = await ended(session)
        ends = [update for update in updates if update.final]
        assert [(update.committed != "", update.ended) for update in ends] == [
            (True, False),
            (False, True),
        ]

    run(main)


def test_a_cut_ends_who_waits_to_be_processed() -> None:
    async def main() -> None:
        with dispatcher(max_waiting_s=1.0) as engine:
            async with Session(
                engine, SessionOptions(limits=ServerLimits(max_waiting_s=1.0))
            ) as session:
                hearing = asyncio.create_task(session.accept(np.zeros(8000 * 600, np.int16)))
                await asyncio.sleep(0.1)
                assert not hearing.done()
                session.interrupt()
                await hearing
                assert (await ended(session))[-1].ended

    run(main)


@pytest.mark.parametrize("end", [Session.flush, Session.finish])
def test_an_end_after_the_engine_has_failed_is_reported_as_such(
    end: Callable[[Session], Coroutine[Any, Any, None]],
) -> None:
    def boom(*_: object) -> None:
        raise MemoryError("no more")

    async def main() -> None:
        with dispatcher() as engine:
            async with Session(engine) as session:
                engine._batch.step = boom  # type: ignore[method-assign, assignment]
                await session.accept(SPEECH[:400])  # in one piece
                while engine.error is None:
                    await asyncio.sleep(0.01)
                with pytest.raises(RequestError, match="no more") as refused:
                    await end(session)
                assert refused.value.code == "internal"

    run(main)


def test_an_engine_that_calls_back_before_the_session_is_made(
    engine: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = engine.open

    def at_once(**options: Any) -> Any:
        live = opened(**options)
        options["on_error"](NearfutureError("too soon"))
        return live

    async def main() -> None:
        monkeypatch.setattr(engine, "open", at_once)
        async with Session(engine) as session:
            with pytest.raises(RequestError, match="too soon"):
                await ended(session)

    run(main)


def test_a_close_at_any_point_frees_the_place_and_wakes_everybody(engine: Dispatcher) -> None:
    async def main() -> None:
        for heard in (0, 1, 5000, len(SPEECH)):
            session = Session(engine)
            reading = asyncio.create_task(ended(session))
            await session.accept(SPEECH[:heard])
            session.close()
            session.close()
            await reading
            assert engine.stats().streams == 0
            with pytest.raises(NearfutureError, match="closed"):
                await session.accept(SPEECH)
            with pytest.raises(NearfutureError, match="closed"):
                await session.finish()

    run(main)


def test_a_close_ends_who_waits_to_be_processed() -> None:
    async def main() -> None:
        with dispatcher(max_waiting_s=1.0) as engine:
            session = Session(engine, SessionOptions(limits=ServerLimits(max_waiting_s=1.0)))
            hearing = asyncio.create_task(session.accept(np.zeros(8000 * 600, np.int16)))
            await asyncio.sleep(0.1)
            session.close()
            with pytest.raises(NearfutureError, match=r"closed|ended"):
                await hearing

    run(main)


def test_the_order_of_calls_is_kept(engine: Dispatcher, offline: Model) -> None:
    async def main() -> None:
        async with Session(engine, SessionOptions(budget_ms=400)) as session:
            half = 9001
            calls = [
                session.accept(SPEECH[:half]),
                session.flush(),
                session.accept(SPEECH[half:]),
                session.finish(),
            ]
            tasks = [asyncio.create_task(call) for call in calls]
            updates = await ended(session)
            await asyncio.gather(*tasks)
        ends = [update for update in updates if update.final]
        assert [update.committed for update in ends] == [
            offline.transcribe(SPEECH[:half]).text,
            offline.transcribe(SPEECH[half:]).text,
        ]
        assert [update.ended for update in ends] == [False, True]

    run(main)


def test_a_flush_of_nothing_says_nothing_once(engine: Dispatcher) -> None:
    async def main() -> None:
        async with Session(engine) as session:
            await session.flush()
            await session.flush()
            await session.finish()
            updates = await ended(session)
        assert [(u.utterance, u.committed, u.ended) for u in updates if u.final] == [
            (0, "", False),
            (1, "", False),
            (2, "", True),
        ]

    run(main)


def test_a_flush_keeps_its_place_under_any_load() -> None:
    async def main() -> None:
        with dispatcher() as engine:
            async with Session(engine) as one, Session(engine):
                engine._queue._max_load = 1e-9
                with pytest.raises(Busy):
                    Session(engine)
                await one.accept(SPEECH[:4000])
                await one.flush()
                await one.accept(SPEECH[4000:8000])
                await one.finish()
                assert len([u for u in await ended(one) if u.final]) == 2

    run(main)


def test_more_audio_than_may_be_is_refused(engine: Dispatcher) -> None:
    async def main() -> None:
        async with Session(
            engine, SessionOptions(limits=ServerLimits(max_stream_s=1.0))
        ) as session:
            await session.accept(SPEECH[:8000])
            with pytest.raises(RequestError, match="1 s of audio") as refused:
                await session.accept(SPEECH[:1])
            assert refused.value.code == "too_long"

    run(main)


def test_a_bad_chunk_changes_nothing(engine: Dispatcher, offline: Model) -> None:
    async def main() -> None:
        async with Session(engine, SessionOptions(budget_ms=400)) as session:
            await session.accept(SPEECH[:5000])
            for bad in (np.inf, np.nan, 5000.0):
                with pytest.raises(RequestError) as refused:
                    await session.accept(np.array([0.0, bad], np.float32))
                assert refused.value.code == "bad_audio"
            await session.accept(SPEECH[5000:])
            await session.finish()
            assert text(await ended(session)) == offline.transcribe(SPEECH).text

    run(main)


def test_long_streams_hold_one_utterance(engine: Dispatcher) -> None:
    async def main() -> None:
        speech = said(*["flite-slt-720"] * 20)
        async with Session(engine, SessionOptions(endpoint=Endpoint())) as session:
            reading = asyncio.create_task(ended(session))
            await session.accept(speech)
            await session.finish()
            updates = await reading
        assert len([u for u in updates if u.final]) >= 20
        assert max(len(update.committed) for update in updates) < 40
        assert max(len(update.words) for update in updates) < 8

    run(main)
