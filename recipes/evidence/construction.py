"""Evidence that arrives late, by construction: a row convolution of ones adds up what it may see.

A frame brings evidence for /t/ and for /d/, as log-likelihoods. A lookahead whose weights are all 1
adds those of the frame and of the τ frames behind it, and the softmax of the two sums is the
decision at the frame of the consonant: as soon as it may be made, and never revised.

    late evidence (for /t/, for /d/): (5, 3) (2, 1) (1, 1) (0, 9) …
    τ = 0:  5 against 3        P(/t/) = 0.88, wrong
    τ = 3:  8 against 14       P(/t/) = 0.002, right
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nearfuture.layers import Lookahead, StreamingLayer

FRAME_MS = 40
LOOKAHEADS = tuple(range(7))


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When the evidence of one consonant comes; a /d/ is spoken in all of them.

    Args:
        name: late, scattered or early.
        evidence: (for /t/, for /d/) for each frame of 40 ms, from that of the consonant on.
    """

    name: str
    evidence: tuple[tuple[float, float], ...]


SCHEDULES = (
    Schedule(name="late", evidence=((5, 3), (2, 1), (1, 1), (0, 9), (1, 1), (1, 1), (1, 1))),
    Schedule(name="scattered", evidence=((1, 2), (4, 1), (0, 5), (1, 1), (1, 1), (1, 1), (1, 1))),
    Schedule(name="early", evidence=((1, 6), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1))),
)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a lookahead answers at the frame of the consonant.

    Args:
        lookahead_frames: τ.
        t: the probability of /t/.
        waited_ms: from the consonant's frame to the one that let the answer out.
    """

    lookahead_frames: int
    t: float
    waited_ms: int

    @property
    def right(self) -> bool:
        """Whether it says /d/, which was spoken."""
        return self.t < 0.5


def adding(tau: int) -> Lookahead:
    """The row convolution that adds a frame and the τ frames behind it, channel by channel."""
    layer = Lookahead(2, frames=tau)
    nn.init.ones_(layer.weights[0])
    return layer


def decide(layer: StreamingLayer, evidence: Sequence[tuple[float, float]]) -> tuple[float, int]:
    """Stream the evidence frame by frame until the answer at the first frame comes out.

        P(/t/) = softmax(r_0) at /t/,    r_0 = Σ_{j=0..τ} evidence_j

    Args:
        layer: two channels, /t/ and /d/.
        evidence: (for /t/, for /d/) of each frame.

    Returns:
        The probability of /t/, and how many frames behind the first one it waited for.

    >>> probability, frames = decide(adding(3), SCHEDULES[0].evidence)
    >>> round(probability, 4), frames
    (0.0025, 3)
    """
    lengths = torch.ones(1, dtype=torch.int64)
    with torch.inference_mode():
        state = layer.start(1)
        for frame, pair in enumerate(evidence):
            y, n, state = layer.step(torch.tensor([[pair]], dtype=torch.float32), lengths, state)
            if n[0]:
                return _t(y), frame
        return _t(layer.finish(state)[0]), len(evidence)


def _t(logits: Tensor) -> float:
    return float(logits[0, 0].softmax(dim=-1)[0])


def decisions(schedule: Schedule, lookaheads: Sequence[int] = LOOKAHEADS) -> list[Decision]:
    """The answers of a lookahead of each τ to one schedule.

    >>> [decision.right for decision in decisions(SCHEDULES[0])]  # late: from τ = 3, 120 ms
    [False, False, False, True, True, True, True]
    >>> [decision.right for decision in decisions(SCHEDULES[1])][:4]  # scattered: not monotonic
    [True, False, True, True]
    >>> all(decision.right for decision in decisions(SCHEDULES[2]))  # early: 0 suffices
    True
    """
    found = []
    for tau in lookaheads:
        probability, frames = decide(adding(tau), schedule.evidence)
        found.append(Decision(lookahead_frames=tau, t=probability, waited_ms=FRAME_MS * frames))
    return found
