"""The one rule by which trainings use a recording or skip it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nearfuture.audio.mixdown import QUIETEST
from nearfuture.budget import RecognizerConfig
from nearfuture.data.cut import Cut, CutError, Skipped, Utterance
from nearfuture.error import NearfutureError
from nearfuture.text import Vocabulary, frames_needed, plural

LONGEST_S = 40.0
"""Longer recordings are skipped unless another limit is set: LibriSpeech's longest has 35 s.
A batch holds as much audio, unless another limit is set."""

_SHOWN = 40  # characters of a text
_SLACK_S = 0.1  # by which a file may be longer than its own header states


@dataclass(frozen=True, kw_only=True)
class CutFilter:
    """The rules for cuts that a model can be trained on; `check` reports the others.

    Attributes:
        longest_s: the longest recording, in seconds.
        model: decides how many frames a recording has; CTC's loss is infinite where its text needs
            more (`nearfuture.text.frames_needed`).

    Raises:
        NearfutureError: where `longest_s` is not above 0.

    >>> rule = CutFilter(longest_s=30.0)
    >>> print(rule.reject("a.wav", "seven", 31.0))
    a.wav: it is 31.0 s long, over the limit of 30 s: cut it into shorter ones, or raise the limit
    >>> rule.reject("a.wav", "seven", 0.1)
    Skipped(name='a.wav', code='too short for its text', reason="its 0.10 s are 2 frames of 40 ms; \
'seven' needs 5")
    >>> rule.reject("a.wav", "seven", 1.0) is None
    True
    """

    longest_s: float = LONGEST_S
    model: RecognizerConfig = field(default_factory=RecognizerConfig)

    def __post_init__(self) -> None:
        if not self.longest_s > 0:
            raise NearfutureError(
                f"the longest recording has {self.longest_s} s: more than 0 seconds are expected",
                code="out_of_range",
                parameter="longest_s",
            )

    def fits(self, text: str, seconds: float) -> bool:
        """Whether CTC can spell a text within so many seconds."""
        return frames_needed(text) <= self.model.frames_in(seconds)

    def reject(self, name: str, text: str, seconds: float) -> Skipped | None:
        """Why a recording of this text and length is skipped, or None."""
        if not text:
            return Skipped(name, "empty transcript", "its transcript is empty")
        if not 0 < seconds < math.inf:
            return Skipped(name, "no samples", f"it is {seconds} s long")
        if seconds > self.longest_s:
            return Skipped(
                name,
                "too long",
                f"it is {seconds:.1f} s long, over the limit of {self.longest_s:g} s: cut it into "
                f"shorter ones, or raise the limit",
            )
        return None if self.fits(text, seconds) else self._too_short(name, text, seconds)

    def reject_utterance(
        self, utterance: Utterance, rate: int, vocabulary: Vocabulary
    ) -> Skipped | None:
        """Why an utterance of a batch, from anywhere, cannot be trained on, or None.

        It may have no text, and any length that its text fits into.
        """
        try:
            vocabulary.encode(utterance.text)
        except NearfutureError as error:
            return Skipped(utterance.name, "outside the vocabulary", str(error))
        if not np.isfinite(utterance.samples).all():
            reason = "it has samples that are not finite numbers"
            return Skipped(utterance.name, "not finite", reason)
        seconds = utterance.samples.size / rate
        if self.fits(utterance.text, seconds):
            return None
        return self._too_short(utterance.name, utterance.text, seconds)

    def _too_short(self, name: str, text: str, seconds: float) -> Skipped:
        frames = plural(self.model.frames_in(seconds), "frame")
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        return Skipped(
            name,
            "too short for its text",
            f"its {seconds:.2f} s are {frames} of {self.model.frame_ms:g} ms; {shown!r} needs "
            f"{frames_needed(text)}",
        )

    def accept(self, cut: Cut) -> Cut:
        """The cut with its duration, which its file's header states if the source does not.

        Raises:
            CutError: where the cut is skipped.
        """
        if cut.duration_s is None:
            cut = cut.probed()
        if skipped := self.reject(cut.name, cut.text, cut.duration_s or 0.0):
            raise CutError(skipped)
        return cut

    def load(self, cut: Cut, rate: int) -> Utterance:
        """The samples of a cut that was accepted; its source may be wrong about its length.

        Raises:
            CutError: where it cannot be loaded, is silent, or is longer than the limit after all.
        """
        utterance = cut.load(rate)
        if np.abs(utterance.samples).max(initial=0.0) <= QUIETEST:
            raise CutError(silent(cut))
        seconds = utterance.samples.size / rate
        if seconds > self.longest_s + _SLACK_S:
            skipped = self.reject(cut.name, cut.text, seconds)
            assert skipped is not None
            raise CutError(skipped)
        return utterance


def silent(cut: Cut) -> Skipped:
    """Why a cut without sound is skipped."""
    return Skipped(
        cut.name,
        "silent",
        f"it is silent: no sample is beyond {QUIETEST:g} of full scale, but its text is "
        f"{cut.text!r}",
    )


def load_utterances(cuts: Sequence[Cut], rate: int) -> tuple[list[Utterance], tuple[Skipped, ...]]:
    """Load cuts into memory, such as those for validation; return also those that cannot be."""
    utterances, skipped = [], []
    for cut in cuts:
        try:
            utterances.append(cut.load(rate))
        except CutError as error:
            skipped.append(error.skipped)
    return utterances, tuple(skipped)
