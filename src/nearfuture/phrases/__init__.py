"""What may be said: template sentences, counted, sampled, spelled and understood."""

from nearfuture.phrases.command import SpokenCommand, TimedSlot
from nearfuture.phrases.phrases import Block, Meaning, Phrases, SlotValue

__all__ = ["Block", "Meaning", "Phrases", "SlotValue", "SpokenCommand", "TimedSlot"]
