"""Every figure is exact against a server whose delays are known, in virtual time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from nearfuture.audio import Audio
from nearfuture.client.connection import Message
from nearfuture.client.measure import (
    METRICS,
    ReferenceRecording,
    ServerMeasurement,
    as_json,
    measure,
    notes,
)
from nearfuture.client.options import MeasureOptions
from nearfuture.client.protocols import Pcm, Vosk, protocol_factory, sent_rate
from nearfuture.decoding import Word
from nearfuture.error import NearfutureError
from tests.client.standin import Standin
from tests.client.virtual import Peer, connector, run
from tests.errors import refuses

PROTOCOLS = ["vosk", "openai", "nearfuture"]
RATE = 8000
# Ends lie on the chunks of 20 ms, so that no wait for a chunk adds to a delay.
WORDS = [("one", 500.0), ("two", 800.0), ("three", 1400.0), ("four", 1700.0)]
SPOKEN = [Word(word, end - 200, end, 1.0) for word, end in WORDS]


def recording(protocol: Any = "vosk", *, name: str = "a", **more: Any) -> ReferenceRecording:
    sound = np.random.default_rng(0).uniform(-0.5, 0.5, 2 * RATE).astype(np.float32)
    more = {"words": SPOKEN, **more}
    return ReferenceRecording.of(name, Audio(sound, RATE), to=sent_rate(protocol, RATE), **more)


def measured(
    protocol: Any, standin: Standin, *recordings: ReferenceRecording, **more: Any
) -> ServerMeasurement:
    connect_s, room = more.pop("connect_s", 0.0), more.pop("room", 1_000_000)
    connect = connector(getattr(standin, protocol), connect_s=connect_s, room=room)
    played = recordings or (recording(protocol),)
    return run(measure(played, connect, protocol_factory(protocol), MeasureOptions(**more)))


def p50(found: ServerMeasurement, name: str) -> float:
    values = found.metrics()[name]
    assert values is not None
    return values.p50


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("lookahead_ms", "delay_ms", "final_ms"), [(0, 0, 0), (240, 75, 130)])
def test_each_delay_is_the_servers(
    protocol: str, lookahead_ms: float, delay_ms: float, final_ms: float
) -> None:
    delays = {"lookahead_ms": lookahead_ms, "delay_ms": delay_ms, "final_ms": final_ms}
    found = measured(protocol, Standin(words=WORDS, greet_ms=120, **delays), connect_s=0.35)
    assert found.failures == {}
    word_ms = lookahead_ms + delay_ms
    greeted_ms = 0 if protocol == "vosk" else 120  # vosk-server says nothing before the audio
    assert p50(found, "connect") == pytest.approx(350 + greeted_ms, abs=0.01)
    assert p50(found, "first token") == pytest.approx(200 + word_ms, abs=0.01)
    assert p50(found, "finalisation") == pytest.approx(final_ms, abs=0.01)
    # The last word ends 300 ms before the audio does; both servers know it by then.
    assert p50(found, "text complete") == pytest.approx(word_ms, abs=0.01)
    for name in ("word shown", "word settled"):
        values = found.metrics()[name]
        assert values is not None
        assert values.count == len(WORDS)
        assert (values.p50, values.max) == pytest.approx((word_ms, word_ms), abs=0.01)


def test_a_partial_is_late_by_the_servers_delay_alone() -> None:
    found = measured("vosk", Standin(words=WORDS, lookahead_ms=240, delay_ms=75, final_ms=75))
    lag = found.metrics()["partial lag"]
    assert lag is not None
    assert lag.count == 100 + 1  # one reply to each chunk, and that to the end
    assert lag.p50 == pytest.approx(75, abs=0.01)
    assert lag.max == pytest.approx(75, abs=0.01)


def test_openai_tells_no_audio_position_so_there_is_no_partial_lag() -> None:
    assert measured("openai", Standin(words=WORDS)).metrics()["partial lag"] is None


def test_a_word_that_is_first_wrong_is_shown_and_settled_when_it_is_right() -> None:
    found = measured("vosk", Standin(words=WORDS, revised={1}))
    values = [one.first_s for one in found.played[0].timeline.words]
    assert values == pytest.approx([0.5, 0.9, 1.4, 1.7])
    assert found.played[0].timeline.revised == 1
    assert found.played[0].timeline.committed_revised == 0


def test_a_word_that_comes_and_goes_counts_from_its_first_time_and_settles_at_its_last() -> None:
    async def fickle(peer: Peer) -> None:
        texts = {25: "one", 30: "", 35: "one"}
        for number in range(102):
            message = await peer.receive()
            if number == 101:
                await peer.send('{"text": "one"}')
            elif number > 0:
                shown = texts[max((at for at in texts if at <= number), default=30)]
                await peer.send(f'{{"partial": "{shown}"}}')
            assert isinstance(message, bytes) or number in (0, 101)

    found = run(measure([recording(words=SPOKEN[:1])], connector(fickle), protocol_factory("vosk")))
    [word] = found.played[0].timeline.words
    assert (word.first_s, word.settled_s) == pytest.approx((0.5, 0.7))
    assert p50(found, "word shown") == pytest.approx(0, abs=0.01)
    assert p50(found, "word settled") == pytest.approx(200, abs=0.01)
    assert found.played[0].timeline.revised == 1
    assert p50(found, "text complete") == pytest.approx(200, abs=0.01)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("wrong", "lost", "repeated"),
    [({}, 0, 0), ({"lost": {1}}, 1, 0), ({"repeated": {0, 3}}, 0, 2)],
)
def test_lost_and_repeated_words_are_counted(
    protocol: str, wrong: dict[str, Any], lost: int, repeated: int
) -> None:
    found = measured(protocol, Standin(words=WORDS, **wrong))
    assert found.word_errors is not None
    errors = found.word_errors.edits
    assert (errors.deletions, errors.insertions, errors.substitutions) == (lost, repeated, 0)
    assert found.word_errors.repeated == repeated
    # The delays of the words that are right do not suffer from those that are not.
    assert p50(found, "word shown") == pytest.approx(0, abs=0.01)


def test_a_wrong_word_has_no_delay() -> None:
    said = [SPOKEN[0], Word("too", 600, 800, 1.0), *SPOKEN[2:]]
    found = measured("vosk", Standin(words=WORDS, delay_ms=40), recording(words=said))
    values = found.metrics()["word shown"]
    assert values is not None
    assert (values.count, values.max) == (3, pytest.approx(40, abs=0.01))
    assert found.word_errors is not None
    assert found.word_errors.edits.substitutions == 1


def test_utterances_are_joined_and_their_words_are_not_taken_back() -> None:
    found = measured("vosk", Standin(words=WORDS, ends={1}, delay_ms=40))
    assert found.played[0].timeline.text == "one two three four"
    assert found.played[0].timeline.revised == 0
    assert p50(found, "word settled") == pytest.approx(40, abs=0.01)


def test_a_server_slower_than_real_time_does_not_slow_the_speaker_down() -> None:
    """Otherwise its delays would be hidden: the next word would be spoken when it is ready."""

    async def slow(peer: Peer) -> None:
        while True:
            message = await peer.receive()
            if isinstance(message, str) and "config" in message:
                continue
            if isinstance(message, str):
                break
            await asyncio.sleep(0.030)  # for 20 ms of audio
            await peer.send('{"partial": ""}')
        await peer.send('{"text": "one"}')

    found = run(measure([recording()], connector(slow, room=10), protocol_factory("vosk")))
    assert found.failures == {}
    # 100 chunks of 30 ms, the first of which was there after 20 ms, for 2000 ms of audio.
    assert p50(found, "finalisation") == pytest.approx(20 + 3000 - 2000, abs=2)
    lag = found.metrics()["partial lag"]
    assert lag is not None
    assert lag.max == pytest.approx(1020, abs=2)
    assert found.kept_pace  # it was the server who was late
    assert found.blocked_s() > 0.5


def test_a_client_that_is_late_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    vosk = protocol_factory("vosk")

    def busy(rate: int) -> Any:
        protocol = vosk(rate)
        audio = protocol.audio

        def encode(pcm: Any) -> list[Message]:
            loop: Any = asyncio.get_running_loop()
            loop._jumping.now_s += 0.025  # as if encoding took longer than the audio lasts
            return audio(pcm)

        monkeypatch.setattr(protocol, "audio", encode)
        return protocol

    connect = connector(Standin(words=WORDS).vosk)
    found = run(measure([recording()] * 2, connect, busy, MeasureOptions(connections=2)))
    assert not found.kept_pace
    assert any("DID NOT KEEP PACE" in line for line in notes(found))
    assert as_json(found, {})["client"]["kept_pace"] is False


def test_the_pace_is_that_of_one_absolute_clock() -> None:
    """A hundred timers that are each late would add up; one clock does not."""
    arrivals: list[float] = []

    async def note(peer: Peer) -> None:
        loop: Any = asyncio.get_running_loop()
        while True:
            message = await peer.receive()
            if isinstance(message, bytes):
                arrivals.append(loop.time())
                loop._jumping.now_s += 0.004  # something else takes a while, each time
            elif "eof" in message:
                await peer.send('{"text": ""}')
                return

    run(measure([recording()], connector(note), protocol_factory("vosk")))
    due = np.arange(1, 101) * 0.02
    assert arrivals == pytest.approx(due, abs=1e-6)


def test_connections_play_every_recording_once_and_begin_with_different_ones() -> None:
    names = ["a", "b", "c"]
    found = measured(
        "vosk",
        Standin(words=WORDS),
        *(recording(name=name) for name in names),
        connections=3,
    )
    by = {n: [one.recording.name for one in found.played if one.connection == n] for n in range(3)}
    assert by == {0: ["a", "b", "c"], 1: ["b", "c", "a"], 2: ["c", "a", "b"]}


def test_no_recording_begins_after_the_seconds_but_those_that_play_go_on() -> None:
    found = measured("vosk", Standin(words=WORDS), seconds=5.0, connections=2)
    assert [len([one for one in found.played if one.connection == n]) for n in (0, 1)] == [3, 3]
    assert max(one.began_s for one in found.played) < 5.0
    assert found.failures == {}


FAULTS = {
    "leaves": ({"close_ms": 1000.0}, "closed the connection (1011 out of memory)"),
    "garbage": ({"garbage": "<html>"}, "'<html>'"),
    "binary": ({"garbage": b"\xff\xfe"}, "'\\xff\\xfe'"),
    "list": ({"garbage": "[1]"}, "'[1]'"),
    "nested": ({"garbage": "[" * 100_000}, "no {protocol} message"),
    "number": ({"garbage": '{"partial": 3, "type": 3}'}, "int, not text"),
    "error": ({"error": "too many streams"}, "reports: too many streams"),
    "mute": ({"mute": True}, "did not finish within 7 s"),
    "stuck": ({"stuck": True}, "did not take the audio for 7 s"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failure_has_one_line_and_the_next_recording_is_played(protocol: str, fault: str) -> None:
    wrong, reason = FAULTS[fault]
    two = [recording(protocol, name=name) for name in "ab"]
    standin = Standin(words=WORDS, **wrong)
    found = measured(protocol, standin, *two, finish_timeout_s=7.0, room=8)
    assert [one.recording.name for one in found.played] == ["a", "b"]
    [(line, count)] = found.failures.items()
    assert count == 2
    assert reason.format(protocol=protocol) in line
    assert "\n" not in line
    assert len(line) < 200
    # What failed is counted as failed, and nowhere else.
    assert all(values is None for values in found.metrics().values())
    assert found.word_errors is None
    assert all(one.word_errors() is None for one in found.played)
    assert as_json(found, {})["failures"] == {line: 2}


def test_a_server_of_another_protocol_is_named() -> None:
    async def silent(peer: Peer) -> None:
        await peer.receive()
        await asyncio.sleep(1e6)

    found = run(measure([recording("openai")], connector(silent), protocol_factory("openai")))
    [line] = found.failures
    assert "not ready for audio within 10 s" in line
    assert "`protocol`" in line


def test_one_connection_that_fails_leaves_the_others_alone() -> None:
    count = 0

    async def sometimes(peer: Peer) -> None:
        nonlocal count
        count += 1
        wrong = {"close_ms": 500.0} if count == 2 else {}
        await Standin(words=WORDS, delay_ms=30, **wrong).vosk(peer)

    found = run(
        measure(
            [recording()],
            connector(sometimes),
            protocol_factory("vosk"),
            MeasureOptions(connections=4),
        )
    )
    assert (len(found.complete), sum(found.failures.values())) == (3, 1)
    assert p50(found, "word shown") == pytest.approx(30, abs=0.01)


def test_without_word_times_energy_says_where_speech_is_and_the_report_tells() -> None:
    sound = np.zeros(2 * RATE, np.float32)
    sound[4000:12_000] = 0.3
    one = ReferenceRecording.of("a", Audio(sound, RATE), to=RATE, text="one two three four")
    found = measured("vosk", Standin(words=WORDS), one)
    assert p50(found, "first token") == pytest.approx(0, abs=0.01)
    assert p50(found, "text complete") == pytest.approx(1700 - 1500, abs=0.01)
    assert found.metrics()["word shown"] is None
    assert any("energy (1)" in line for line in notes(found))
    assert any("for `words`" in line for line in notes(found))
    assert not any("for `words`" in line for line in notes(measured("vosk", Standin(words=WORDS))))
    assert found.word_errors is not None
    assert found.word_errors.edits.rate == 0


def test_silence_has_no_first_token() -> None:
    one = ReferenceRecording.of("a", Audio(np.zeros(RATE, np.float32), RATE), to=RATE, text="")
    found = measured("vosk", Standin(words=[]), one)
    assert found.metrics()["first token"] is None
    assert p50(found, "finalisation") == pytest.approx(0, abs=0.01)
    assert found.word_errors is not None
    assert found.word_errors.edits.rate == 0


def test_json_has_every_figure_and_every_recording() -> None:
    told = as_json(measured("vosk", Standin(words=WORDS, delay_ms=20)), {"url": "ws://here"})
    assert set(told["ms"]) == set(METRICS)
    assert told["ms"]["word shown"] == {"count": 4, "p50": 20, "p90": 20, "p99": 20, "max": 20}
    assert told["recordings"][0]["text"] == "one two three four"
    assert told["words"]["error_rate"] == 0


@pytest.mark.parametrize(
    ("more", "values"),
    [
        ({"connections": 0}, ("0",)),
        ({"seconds": 0.0}, ("above 0", "not 0")),
        ({"chunk_ms": 0.0}, ("1 to 10000 ms", "not 0")),
        ({"chunk_ms": 10_001.0}, ("10000 ms", "10001")),
        ({"finish_timeout_s": float("nan")}, ("nan",)),
    ],
)
def test_numbers_without_sense_are_refused(more: dict[str, Any], values: tuple[str, ...]) -> None:
    [parameter] = more
    with refuses("out_of_range", parameter, *values):
        MeasureOptions(**more)


def test_word_times_of_another_text_are_refused() -> None:
    with pytest.raises(NearfutureError, match="another text"):
        recording(text="one two three")


def test_a_server_that_ends_early_has_failed_and_its_text_was_seen() -> None:
    async def stop(peer: Peer) -> None:
        await peer.receive()
        await peer.send('{"type": "ready"}')
        for _ in range(10):
            await peer.receive()
        update = {"type": "update", "utterance": 0, "committed": "one", "provisional": ""}
        await peer.send(json.dumps(update | {"final": True, "ended": True}))

    found = run(measure([recording("nearfuture")], connector(stop), protocol_factory("nearfuture")))
    [line] = found.failures
    assert "before the audio was over" in line
    assert found.played[0].timeline.text == "one"
    assert found.played[0].lasted_s == pytest.approx(0.2)


def test_a_mistake_of_our_own_is_not_waited_for() -> None:
    class Wrong(Vosk):
        def audio(self, pcm: Pcm) -> list[Message]:
            raise ZeroDivisionError

    loop_s = []

    async def timed() -> None:
        try:
            await measure([recording()], connector(Standin(words=WORDS).vosk), Wrong)
        finally:
            loop_s.append(asyncio.get_running_loop().time())

    with pytest.raises(ExceptionGroup) as caught:
        run(timed())
    assert caught.group_contains(ZeroDivisionError)
    assert loop_s == pytest.approx([0.02])
