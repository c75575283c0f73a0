"""What a session hears, as OpenAI's events: the official types read them, and nothing is lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from nearfuture.decoding import Word
from nearfuture.serving.protocols.realtime_items import Conversation, ServerEvent
from nearfuture.serving.session import Update

EVENTS: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)


def update(text: str, *, final: bool = False, audio_ms: float = 1000.0) -> Update:
    words = tuple(Word(word, 300.0, 500.0, 0.9) for word in text.split())
    return Update(
        utterance=0,
        committed=text,
        provisional=" and",
        final=final,
        ended=False,
        words=words,
        audio_ms=audio_ms,
        compute_ms=1.0,
    )


def kinds(events: list[ServerEvent]) -> list[str]:
    return [event["type"].removeprefix("conversation.item.") for event in events]


def hear(talk: Conversation, *updates: Update, **options: Any) -> list[ServerEvent]:
    usual = {"committed": False, "detects_turns": True, "dialect": "ga"}
    events = [event for one in updates for event in talk.events(one, **(usual | options))]
    for number, event in enumerate(events):
        EVENTS.validate_python({"event_id": f"event_{number}", **event}, strict=True)
    return events


def test_an_utterance_that_the_server_ends() -> None:
    events = hear(
        Conversation(), update(""), update("two"), update("two one", final=True, audio_ms=2400.0)
    )
    assert kinds(events) == [
        "input_audio_buffer.speech_started",
        "input_audio_transcription.delta",
        "input_audio_transcription.delta",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "added",
        "done",
        "input_audio_transcription.completed",
    ]
    assert len({event.get("item_id", event.get("item", {}).get("id")) for event in events}) == 1
    assert events[0]["audio_start_ms"] == 300
    assert events[3]["audio_end_ms"] == 2400
    assert events[-1]["transcript"] == "two one"
    assert events[-1]["usage"] == {"type": "duration", "seconds": 2.4}


def test_an_utterance_that_the_client_ends() -> None:
    events = hear(Conversation(), update("two"), detects_turns=False)
    assert kinds(events) == ["input_audio_transcription.delta"]
    events = hear(
        Conversation(),
        update("two", final=True),
        committed=True,
        detects_turns=False,
        dialect="beta",
    )
    assert kinds(events) == [
        "input_audio_transcription.delta",
        "input_audio_buffer.committed",
        "created",
        "input_audio_transcription.completed",
    ]


def test_silence_leaves_no_trace_unless_it_was_committed() -> None:
    assert hear(Conversation(), update(""), update("", final=True)) == []
    events = hear(Conversation(), update("", final=True), committed=True)
    assert kinds(events)[-1] == "input_audio_transcription.completed"
    assert events[-1]["transcript"] == ""


def test_items_are_in_a_chain() -> None:
    talk = Conversation()
    events = hear(talk, update("two", final=True), update("one", final=True, audio_ms=1500.0))
    committed = [event for event in events if event["type"].endswith("committed")]
    assert [event["previous_item_id"] for event in committed] == [None, committed[0]["item_id"]]
    assert committed[0]["item_id"] != committed[1]["item_id"]
    assert [event["usage"]["seconds"] for event in events if "usage" in event] == [1.0, 0.5]


def test_what_is_cleared_is_forgotten_and_time_goes_on() -> None:
    talk = Conversation()
    (_, first) = hear(talk, update("two"))
    talk.clear(5000.0)
    (started, delta) = hear(talk, update("one"))
    assert started["audio_start_ms"] == 5300
    assert delta["delta"] == "one"
    assert delta["item_id"] != first["item_id"]


@given(
    st.lists(
        st.tuples(st.lists(st.text("ab ", max_size=4), max_size=5), st.booleans()), max_size=6
    ),
    st.booleans(),
)
def test_deltas_are_the_transcript(utterances: list[tuple[list[str], bool]], detects: bool) -> None:
    talk = Conversation()
    texts: dict[str, str] = {}
    completed: list[str] = []
    expected = []
    for parts, asked in utterances:
        text, updates = "", []
        for part in parts:
            text = (text + part).strip()
            updates.append(update(text))
        hear(talk) if not updates else None
        events = hear(talk, *updates, detects_turns=detects)
        events += hear(talk, update(text, final=True), committed=asked, detects_turns=detects)
        for event in events:
            if event["type"].endswith(".delta"):
                texts[event["item_id"]] = texts.get(event["item_id"], "") + event["delta"]
            if event["type"].endswith(".completed"):
                assert texts.get(event["item_id"], "") == event["transcript"]
                completed.append(event["transcript"])
        if text or asked:
            expected.append(text)
    assert completed == expected


def test_the_check_of_types_can_fail() -> None:
    with pytest.raises(ValueError, match="event_id"):
        EVENTS.validate_python({"type": "input_audio_buffer.cleared"}, strict=True)
