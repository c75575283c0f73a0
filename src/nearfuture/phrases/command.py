"""A spoken sentence of a grammar with its meaning: intent and slots, and where they are in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nearfuture.decoding import GrammarResult
from nearfuture.phrases.phrases import Phrases
from nearfuture.text import TimedText, timed_json


@dataclass(frozen=True)
class TimedSlot(TimedText):
    """A part of a sentence that was one of a list, with its place in the audio.

    Args:
        text: what was said.
        start_ms: of its first word.
        end_ms: of its last word.
        confidence: in [0, 1], the least of those of its words.
        value: what it means.
    """

    value: Any = None


@dataclass(frozen=True)
class SpokenCommand:
    """What was said between two silences, and what it means.

    Args:
        result: the text, its words, its confidence, and whether it was understood.
        intent: its name; None for plain lines, and where nothing was understood.
        slots: by their names.
        fixed: the values of slots that the intent sets, whatever is said.
    """

    result: GrammarResult
    intent: str | None = None
    slots: Mapping[str, TimedSlot] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, result: GrammarResult, phrases: Phrases) -> SpokenCommand:
        """Return the meaning of a result of the phrases' grammar."""
        meaning = phrases.understand(result.text) if result.understood else None
        if meaning is None:
            return cls(result)
        slots, at = {}, 0
        places = []
        for word in result.words:
            places.append((at, at + len(word.text), word))
            at += len(word.text) + 1
        for name, slot in meaning.slots.items():
            said = [word for begin, end, word in places if begin < slot.end and slot.begin < end]
            confidence = min(word.confidence for word in said)
            slots[name] = TimedSlot(
                slot.text, said[0].start_ms, said[-1].end_ms, confidence, slot.value
            )
        return cls(result, meaning.intent, slots, meaning.fixed)

    @property
    def values(self) -> dict[str, Any]:
        """The value of every slot."""
        return {**self.fixed, **{name: slot.value for name, slot in self.slots.items()}}

    def json(self) -> dict[str, Any]:
        """Return it as JSON has it; times in ms, rounded as those of words are."""
        slots: dict[str, Any] = {name: {"value": value} for name, value in self.fixed.items()}
        for name, slot in self.slots.items():
            slots[name] = {"value": slot.value, **timed_json(slot)}
        return {
            "understood": self.result.understood,
            "text": self.result.text,
            "intent": self.intent,
            "slots": slots,
            "confidence": round(self.result.confidence, 4),
            "start_ms": round(self.result.start_ms, 1),
            "end_ms": round(self.result.end_ms, 1),
        }
