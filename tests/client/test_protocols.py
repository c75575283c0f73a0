"""What protocols make of messages, the odd ones included."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfuture.client.caption import Caption
from nearfuture.client.connection import ServerError
from nearfuture.client.protocols import OpenAIRealtime, StreamProtocol, Vosk, protocol_factory
from tests.errors import refuses

PCM = np.arange(-3, 3, dtype=np.int16)
ITEM = "conversation.item.input_audio_transcription"


def ready(protocol: StreamProtocol) -> StreamProtocol:
    protocol.opening()
    protocol.audio(PCM)
    return protocol


def told(protocol: StreamProtocol, **message: Any) -> Caption | None:
    return protocol.read(json.dumps(message))


def test_vosk_takes_the_best_alternative() -> None:
    vosk = ready(Vosk(8000))
    vosk.ending()
    told(vosk, partial="a")
    caption = told(vosk, alternatives=[{"text": "one", "confidence": 9}, {"text": "on"}])
    assert caption is not None
    assert (caption.committed, caption.final, vosk.ended) == ("one", True, True)


def test_vosk_that_answers_too_seldom_has_ended_when_it_closes_after_a_result() -> None:
    vosk = Vosk(8000)
    vosk.audio(PCM), vosk.audio(PCM)
    assert not vosk.complete_when_closed
    told(vosk, text="one")
    assert (
        not vosk.complete_when_closed
    )  # a result before the end of the audio is an utterance, not the end
    vosk.ending()
    assert not vosk.complete_when_closed
    told(vosk, text="two")
    assert vosk.complete_when_closed
    assert not vosk.ended


def test_vosk_that_answers_too_often_has_heard_no_more_than_all() -> None:
    vosk = Vosk(8000)
    vosk.audio(np.zeros(80, np.int16))
    heard = [caption.audio_ms for _ in range(3) if (caption := told(vosk, partial=""))]
    assert heard == [10.0] * 3


@pytest.mark.parametrize("message", ["{}", "", "null", '"text"', '{"text": null}', b"\x00"])
def test_vosk_refuses_what_is_no_reply(message: str | bytes) -> None:
    with pytest.raises(ServerError):
        ready(Vosk(8000)).read(message)


def test_openai_waits_for_every_item_of_a_server_that_ends_turns_by_itself() -> None:
    openai = ready(OpenAIRealtime(8000))
    told(openai, type="input_audio_buffer.committed", item_id="a")
    openai.ending()
    assert not openai.ended
    error = {"code": "input_audio_buffer_commit_empty", "message": "nothing left"}
    told(openai, type="error", error=error)
    assert not openai.ended
    told(openai, type=f"{ITEM}.completed", item_id="a", transcript="one")
    assert openai.ended


def test_openai_items_may_complete_out_of_order() -> None:
    openai = ready(OpenAIRealtime(8000))
    told(openai, type="input_audio_buffer.committed", item_id="a")
    openai.ending()
    told(openai, type="input_audio_buffer.committed", item_id="b")
    told(openai, type=f"{ITEM}.delta", item_id="b", delta="tw")
    caption = told(openai, type=f"{ITEM}.delta", item_id="b", delta="o")
    assert caption == Caption(utterance="b", committed="two")
    told(openai, type=f"{ITEM}.completed", item_id="b", transcript="two")
    assert not openai.ended
    told(openai, type=f"{ITEM}.completed", item_id="a", transcript="one")
    assert openai.ended


@pytest.mark.parametrize("event", ["error", f"{ITEM}.failed"])
def test_openai_errors_are_told(event: str) -> None:
    with pytest.raises(ServerError, match="no such model"):
        told(ready(OpenAIRealtime(8000)), type=event, error={"message": "no such model"})
    with pytest.raises(ServerError, match="an error"):
        told(ready(OpenAIRealtime(8000)), type=event, error=None)


def test_openai_passes_over_events_that_it_does_not_need() -> None:
    assert told(ready(OpenAIRealtime(8000)), type="rate_limits.updated") is None


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("ws://a/v1/realtime", "ws://a/v1/realtime?intent=transcription"),
        ("ws://a/v1/realtime?model=x", "ws://a/v1/realtime?model=x"),
    ],
)
def test_openai_asks_for_transcription_unless_the_address_asks(url: str, address: str) -> None:
    assert OpenAIRealtime.address(url) == address


def test_an_option_that_a_protocol_lacks_is_refused() -> None:
    for name in ("vosk", "openai"):
        with refuses("unsupported", "budget_ms", name):
            protocol_factory(name, budget_ms=400)  # type: ignore[arg-type]
    with refuses("unsupported", "model", "vosk"):
        protocol_factory("vosk", model="x")
    model = json.loads(str(protocol_factory("openai", model="x")(8000).opening()[0]))
    assert model["session"]["audio"]["input"]["transcription"] == {"model": "x"}


def test_nearfuture_asks_for_what_is_given_and_reports_errors() -> None:
    hello = json.loads(
        str(protocol_factory("nearfuture", budget_ms=300, model="x")(16000).opening()[0])
    )
    assert (hello["rate"], hello["budget_ms"], hello["model"]) == (16000, 300, "x")
    stream = ready(protocol_factory("nearfuture")(8000))
    assert not stream.ready
    told(stream, type="ready")
    assert stream.ready
    with pytest.raises(ServerError, match="no room"):
        told(stream, type="error", code="busy", message="no room")


ERRORS = {
    "nearfuture": {"type": "error", "code": "bad_request", "message": "no such thing"},
    "openai": {"type": "error", "error": {"type": "x", "message": "no such thing"}},
    "vosk": {"error": "no such thing"},
}


@pytest.mark.parametrize(
    ("spoken", "form"),
    [(spoken, form) for spoken in ERRORS for form in ERRORS if form != "vosk" or spoken == form],
)
def test_an_error_is_told_whatever_protocol_the_server_speaks(spoken: Any, form: str) -> None:
    with pytest.raises(ServerError, match="the server reports: no such thing") as caught:
        told(ready(protocol_factory(spoken)(8000)), **ERRORS[form])
    assert ("`protocol`" in str(caught.value)) == (form != spoken)


FIELDS = ["item_id", "delta", "transcript", "committed", "provisional", "audio_ms", "ended"]
KEYS = st.sampled_from(["type", "text", "partial", "result", "alternatives", "error", *FIELDS])
TYPES = st.sampled_from(["session.updated", "input_audio_buffer.committed", f"{ITEM}.delta"]) | (
    st.sampled_from([f"{ITEM}.completed", f"{ITEM}.failed", "error", "ready", "update"])
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
MESSAGES = (
    st.dictionaries(KEYS, VALUES, max_size=6).map(json.dumps)
    | st.fixed_dictionaries(
        {"type": TYPES},
        optional={name: VALUES | st.text(max_size=5) for name in FIELDS},
    ).map(json.dumps)
    | st.text(max_size=20)
    | st.binary(max_size=20)
)


@pytest.mark.parametrize("name", ["vosk", "openai", "nearfuture"])
@settings(max_examples=40)
@given(messages=st.lists(MESSAGES, max_size=8))
def test_whatever_a_server_says_is_a_caption_or_one_line_of_error(
    name: Any, messages: list[str | bytes]
) -> None:
    protocol = ready(protocol_factory(name)(8000))
    for message in messages:
        caption, failure = None, ""
        try:
            caption = protocol.read(message)
        except ServerError as error:
            failure = str(error)
        assert failure.isprintable()
        assert len(failure) < 300
        assert caption is None or not any(ord(character) < 32 for character in caption.text)
