"""A recogniser that hears nothing and knows the text: late by known delays, wrong as it is told."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from nearfuture.client.connection import Closed


class Wire(Protocol):
    """The server's end of a connection."""

    async def send(self, message: str | bytes) -> None: ...

    async def receive(self) -> str | bytes: ...

    def close(self, why: str) -> None: ...


class Outbox:
    """Sends replies in order, each after a delay, while more is heard."""

    def __init__(self, wire: Wire, delay_ms: float) -> None:
        self._wire, self._delay_s = wire, delay_ms / 1000
        self._waiting: asyncio.Queue[tuple[float, str]] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def put(self, reply: dict[str, Any]) -> None:
        due_s = asyncio.get_running_loop().time() + self._delay_s
        self._waiting.put_nowait((due_s, json.dumps(reply)))

    async def drained(self) -> None:
        """Until everything is sent."""
        await self._waiting.join()

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due_s, message = await self._waiting.get()
            await asyncio.sleep(due_s - clock())
            with contextlib.suppress(Closed):
                await self._wire.send(message)
            self._waiting.task_done()


@dataclass(frozen=True, kw_only=True)
class Standin:
    """What it says and when.

    Args:
        words: each with its end in ms.
        lookahead_ms: so much audio behind a word is needed before it is shown.
        delay_ms: from hearing audio to the message about it.
        greet_ms: from what the client wants to the readiness for audio, where that is told.
        final_ms: the same as `delay_ms`, at the end of the audio.
        lost, repeated: numbers of words not shown, or shown twice.
        revised: numbers of words that are "oh" when they are first shown, for 100 ms of audio.
        ends: numbers of words that end an utterance.
        close_ms: closes the connection after so much audio.
        garbage: sent instead of every message about audio.
        error: sent as an error, in the protocol's form, after the first audio.
        mute: says nothing at the end, and keeps the connection open.
        stuck: takes no more messages after the first audio.
        rate: samples per second, where the protocol does not tell.
    """

    words: Sequence[tuple[str, float]]
    lookahead_ms: float = 0.0
    delay_ms: float = 0.0
    greet_ms: float = 0.0
    final_ms: float = 0.0
    lost: Collection[int] = ()
    repeated: Collection[int] = ()
    revised: Collection[int] = ()
    ends: Collection[int] = ()
    close_ms: float | None = None
    garbage: str | bytes | None = None
    error: str | None = None
    mute: bool = False
    stuck: bool = False

    def shown(self, heard_ms: float, *, over: bool = False) -> list[list[str]]:
        """The utterances so far, the last one open (perhaps empty)."""
        found: list[list[str]] = [[]]
        for number, (word, end_ms) in enumerate(self.words):
            seen_ms = heard_ms - end_ms - self.lookahead_ms
            if seen_ms < -1e-6 and not over:
                break
            if number not in self.lost:
                early = number in self.revised and seen_ms < 100 - 1e-6 and not over
                found[-1] += ["oh" if early else word] * (1 + (number in self.repeated))
            if number in self.ends:
                found.append([])
        return found

    async def vosk(self, wire: Wire) -> None:
        async with Outbox(wire, self.delay_ms) as outbox:
            await self._vosk(wire, outbox)

    async def _vosk(self, wire: Wire, outbox: Outbox) -> None:
        rate, samples, results = 8000, 0, 0
        while True:
            message = await wire.receive()
            if isinstance(message, str):
                told = json.loads(message)
                if "config" in told:
                    rate = told["config"]["sample_rate"]
                    continue
                assert told == {"eof": 1}
                break
            samples += len(message) // 2
            heard_ms = 1000 * samples / rate
            if await self._fault(wire, heard_ms, {"error": self.error}):
                return
            shown = self.shown(heard_ms)
            if len(shown) > results + 1:
                reply = {"text": " ".join(shown[results])}
                results += 1
            else:
                reply = {"partial": " ".join(shown[results])}
            outbox.put(reply)
        if self.mute:
            await asyncio.sleep(1e6)
        await asyncio.gather(asyncio.sleep(self.final_ms / 1000), outbox.drained())
        await wire.send(json.dumps({"text": " ".join(self.shown(0, over=True)[results])}))

    async def openai(self, wire: Wire) -> None:
        async with Outbox(wire, self.delay_ms) as outbox:
            await self._openai(wire, outbox)

    async def _openai(self, wire: Wire, outbox: Outbox) -> None:
        samples, said = 0, ""
        await wire.send(json.dumps({"type": "session.created", "session": {}}))
        while True:
            told = json.loads(await wire.receive())
            if told["type"] == "session.update":
                heard = told["session"]["audio"]["input"]
                assert heard["format"] == {"type": "audio/pcm", "rate": 24000}
                assert heard["turn_detection"] is None
                await asyncio.sleep(self.greet_ms / 1000)
                await wire.send(json.dumps({"type": "session.updated", "session": {}}))
                continue
            if told["type"] == "input_audio_buffer.commit":
                break
            assert told["type"] == "input_audio_buffer.append"
            samples += len(base64.b64decode(told["audio"])) // 2
            error = {"type": "error", "error": {"type": "server_error", "message": self.error}}
            if await self._fault(wire, samples / 24, error):
                return
            text = " ".join(self.shown(samples / 24)[0])
            if text != said:
                outbox.put(self._item("delta", delta=text.removeprefix(said)))
                said = text
        await wire.send(json.dumps({"type": "input_audio_buffer.committed", "item_id": "a"}))
        if self.mute:
            await asyncio.sleep(1e6)
        await asyncio.gather(asyncio.sleep(self.final_ms / 1000), outbox.drained())
        text = " ".join(self.shown(0, over=True)[0])
        if text != said:
            await wire.send(json.dumps(self._item("delta", delta=text.removeprefix(said))))
        await wire.send(json.dumps(self._item("completed", transcript=text)))
        await wire.receive()  # a session lasts until the client leaves

    async def nearfuture(self, wire: Wire) -> None:
        async with Outbox(wire, self.delay_ms) as outbox:
            await self._nearfuture(wire, outbox)

    async def _nearfuture(self, wire: Wire, outbox: Outbox) -> None:
        hello = json.loads(await wire.receive())
        assert (hello["type"], hello["version"], hello["encoding"]) == ("hello", 1, "int16")
        await asyncio.sleep(self.greet_ms / 1000)
        await wire.send(json.dumps({"type": "ready", "version": 1}))
        samples, done, last = 0, 0, ""
        while isinstance(message := await wire.receive(), bytes):
            samples += len(message) // 2
            heard_ms = 1000 * samples / hello["rate"]
            error = {"type": "error", "code": "busy", "message": self.error}
            if await self._fault(wire, heard_ms, error):
                return
            shown = self.shown(heard_ms)
            for number in range(done, len(shown)):
                update = self._update(number, shown, heard_ms)
                if update["final"] or update["committed"] != last:
                    outbox.put(update)
                last = "" if update["final"] else update["committed"]
            done = len(shown) - 1
        assert json.loads(message) == {"type": "finish"}
        if self.mute:
            await asyncio.sleep(1e6)
        await asyncio.gather(asyncio.sleep(self.final_ms / 1000), outbox.drained())
        shown = self.shown(0, over=True)
        update = self._update(len(shown) - 1, shown, 1000 * samples / hello["rate"])
        await wire.send(json.dumps(update | {"final": True, "ended": True, "provisional": ""}))

    def _update(self, number: int, shown: list[list[str]], heard_ms: float) -> dict[str, Any]:
        final = number < len(shown) - 1
        text = " ".join(shown[number])
        return {
            "type": "update",
            "utterance": number,
            "committed": text,
            "provisional": "",
            "final": final,
            "ended": False,
            "continues": False,
            "audio_ms": heard_ms,
        }

    @staticmethod
    def _item(kind: str, **more: str) -> dict[str, Any]:
        name = f"conversation.item.input_audio_transcription.{kind}"
        return {"type": name, "event_id": "e", "item_id": "a", "content_index": 0, **more}

    async def _fault(self, wire: Wire, heard_ms: float, error: dict[str, Any]) -> bool:
        """Do what is wrong with this server; whether that was the end."""
        if self.stuck:
            await asyncio.sleep(1e6)
        if self.garbage is not None:
            await wire.send(self.garbage)
        if self.error is not None:
            await wire.send(json.dumps(error))
        if self.close_ms is not None and heard_ms >= self.close_ms:
            wire.close("the server closed the connection (1011 out of memory)")
            return True
        return False
