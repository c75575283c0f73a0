"""Turns of uploaded recordings: short ones do not wait for long ones, and it shows who waits."""

import asyncio
import io
import threading

import httpx
import numpy as np
import pytest
import soundfile

from nearfuture.audio import AudioReader, open_audio
from nearfuture.runtime import Dispatcher
from nearfuture.serving.errors import RequestError
from nearfuture.serving.protocols import openai_rest
from nearfuture.serving.uploads import CONCURRENT, UploadScheduler
from tests.serving.live import Live, live


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def silence(seconds: float, form: str = "FLAC") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.zeros(int(8000 * seconds), np.int16), 8000, format=form)
    return file.getvalue()


def post(server: Live, data: bytes) -> httpx.Response:
    return httpx.post(
        f"http://{server.address}/v1/audio/transcriptions",
        data={"model": "digits"},
        files={"file": ("a.flac", data)},
        timeout=60,
    )


def test_nobody_waits_where_nobody_is() -> None:
    assert UploadScheduler(max_started=100).waited_s == 0.0


def test_a_short_recording_waits_for_a_turn_of_the_long_ones_and_no_more() -> None:
    order: list[str] = []

    async def hear(uploads: UploadScheduler, name: str, seconds: int) -> None:
        async with uploads.admit() as upload:
            for _ in range(seconds):
                await asyncio.sleep(0)
                await upload.advance(1.0)
        order.append(name)

    async def main() -> None:
        uploads = UploadScheduler(max_started=100)
        async with asyncio.TaskGroup() as tasks:
            for number in range(6):
                tasks.create_task(hear(uploads, f"long {number}", 1000))
            await asyncio.sleep(0)
            tasks.create_task(hear(uploads, "short", 2))
        assert (uploads.running, uploads.waiting) == (0, 0)

    asyncio.run(main())
    assert order[0] == "short"


def test_long_recordings_share() -> None:
    heard = [0] * 6

    async def hear(uploads: UploadScheduler, number: int) -> None:
        async with uploads.admit() as upload:
            while max(heard) < 400:
                await asyncio.sleep(0)
                heard[number] += 1
                await upload.advance(1.0)

    async def main() -> None:
        uploads = UploadScheduler(max_started=100)
        await asyncio.gather(*(hear(uploads, number) for number in range(6)))

    asyncio.run(main())
    assert max(heard) - min(heard) <= 21  # two turns


def test_who_leaves_gives_back_turn_and_place() -> None:
    async def main() -> None:
        uploads = UploadScheduler(max_started=CONCURRENT)
        held = asyncio.Event()

        async def hold() -> None:
            async with uploads.admit():
                await held.wait()

        tasks = [asyncio.create_task(hold()) for _ in range(CONCURRENT + 2)]
        await asyncio.sleep(0.01)
        assert (uploads.running, uploads.waiting) == (CONCURRENT, 2)
        for task in (tasks[-1], tasks[0]):  # one that waits, one that runs
            task.cancel()
        await asyncio.sleep(0.01)
        assert (uploads.running, uploads.waiting) == (CONCURRENT, 0)
        held.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (uploads.running, uploads.waiting) == (0, 0)
        async with uploads.admit():
            assert uploads.running == 1

    asyncio.run(main())


def test_uploads_that_hang_leave_the_threads_of_live_streams_alone() -> None:
    """A decoder cannot be interrupted: its client leaves, its thread stays."""

    async def main() -> None:
        uploads, gate = UploadScheduler(max_started=100), threading.Event()

        async def hang() -> None:
            async with uploads.admit() as upload:
                await upload.in_thread(gate.wait)

        try:
            for _ in range(100):
                client = asyncio.create_task(hang())
                await asyncio.sleep(0.001)
                client.cancel()
                await asyncio.gather(client, return_exceptions=True)
            async with asyncio.timeout(30):
                assert await asyncio.to_thread(int, "7") == 7
        finally:
            gate.set()

    asyncio.run(main())


def test_a_pool_that_stands_still_is_reported() -> None:
    async def main() -> None:
        clock = Clock()
        uploads = UploadScheduler(max_started=100, clock=clock)
        entered = [uploads.admit() for _ in range(CONCURRENT)]
        running = [await one.__aenter__() for one in entered]
        clock.now = 29.0
        assert uploads.overload() is None
        clock.now = 31.0
        stuck = uploads.overload()
        assert stuck is not None
        assert "make no progress for 31 s" in str(stuck)
        running[2].record_progress()
        assert uploads.overload() is None
        waiting = asyncio.create_task(uploads.admit().__aenter__())
        await asyncio.sleep(0)
        clock.now = 62.0
        running[2].record_progress()
        stuck = uploads.overload()
        assert stuck is not None
        assert stuck.status == 503
        assert "1 uploads wait, the first for 31 s" in str(stuck)
        waiting.cancel()
        for one in entered:
            await one.__aexit__(None, None, None)

    asyncio.run(main())


def test_readiness_and_metrics_tell(engine: Dispatcher) -> None:
    with live(engine) as server:
        uploads = server.service.uploads
        clock = Clock()
        uploads._clock = clock
        held = asyncio.Event()

        async def hold() -> None:
            async with uploads.admit():
                await held.wait()

        loop = server.served.loop
        tasks = [asyncio.run_coroutine_threadsafe(hold(), loop) for _ in range(CONCURRENT + 1)]
        while uploads.running < CONCURRENT or not uploads.waiting:
            asyncio.run(asyncio.sleep(0.01))
        ready = httpx.get(f"http://{server.address}/ready")
        assert (ready.status_code, ready.json()["uploads"]) == (200, {"running": 4, "waiting": 1})
        clock.now = 40.0
        stuck = httpx.get(f"http://{server.address}/ready")
        assert stuck.status_code == 503
        assert stuck.json()["error"]["code"] == "busy"
        page = httpx.get(f"http://{server.address}/metrics").text
        assert 'nearfuture_uploads{state="waiting"} 1.0' in page
        assert 'nearfuture_uploads{state="running"} 4.0' in page
        assert "nearfuture_upload_wait_seconds 40.0" in page
        assert "nearfuture_ready 0.0" in page
        assert server.service.rejection() is None  # live streams do not wait for uploads
        loop.call_soon_threadsafe(held.set)
        for task in tasks:
            task.result(10)
        assert httpx.get(f"http://{server.address}/ready").status_code == 200


@pytest.mark.parametrize("form", ["FLAC", "WAV"])
def test_an_upload_of_too_much_audio_is_refused(engine: Dispatcher, form: str) -> None:
    with live(engine, max_upload_s=20.0) as server:
        assert post(server, silence(20.0, form)).status_code == 200
        refused = post(server, silence(20.5, form))
        assert refused.status_code == 413
        assert refused.json()["error"]["code"] == "too_long"
        assert "0.333333 minutes" in refused.json()["error"]["message"]
        server.wait_until_free()


@pytest.mark.parametrize(("limits", "status"), [({"max_upload_s": 1.0}, 413), ({}, 503)])
def test_a_recording_that_is_refused_is_closed(
    engine: Dispatcher,
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, float],
    status: int,
) -> None:
    closed: list[str] = []

    def opened(data: bytes) -> AudioReader:
        reader = open_audio(data)
        close = reader.close

        def closing() -> None:
            close()
            closed.append("recording")

        monkeypatch.setattr(reader, "close", closing)
        return reader

    async def full(**_: object) -> None:
        raise RequestError("busy", "no room")

    monkeypatch.setattr(openai_rest, "open_audio", opened)
    with live(engine, **limits) as server:
        monkeypatch.setattr(server.service, "session", full)
        assert post(server, silence(2.0)).status_code == status
        server.wait_until_free()
    assert closed == ["recording"]


def test_an_upload_that_does_not_say_its_length_is_refused_when_it_shows(
    engine: Dispatcher,
) -> None:
    data = bytearray(silence(25.0, "WAV"))
    data[40:44] = b"\xff\xff\xff\xff"
    with live(engine, max_upload_s=20.0) as server:
        assert post(server, bytes(data)).status_code == 413
        server.wait_until_free()
