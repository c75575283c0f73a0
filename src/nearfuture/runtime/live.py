"""One of many live streams: the caller's side, which takes samples at any time from any thread."""

from __future__ import annotations

import os
import threading
from time import perf_counter

from numpy.typing import ArrayLike

from nearfuture.budget import Latency
from nearfuture.error import NearfutureError
from nearfuture.runtime.pcm import Quanta, as_samples
from nearfuture.runtime.places import Places
from nearfuture.runtime.seat import Quantum, Seat
from nearfuture.runtime.stream import Budget

_EARLY_S = 1.0
"""Whose audio comes so long before it can have been spoken is no live speaker. Less is within what
networks do: they hold back the first chunk and bring the next ones in a burst."""


class LiveStream:
    """One live stream among many; made by `Dispatcher.open`, safe to use from any thread.

    Args:
        places: of the dispatcher.
        seat: its own place there.
        quanta: how samples become quanta.
        latency: of the head that commits, itemised, for the rate of this stream.
        frames: lookahead τ of that head.
        most_waiting_s: how much audio may wait.
    """

    def __init__(
        self,
        places: Places,
        seat: Seat,
        quanta: Quanta,
        *,
        latency: Latency,
        frames: int,
        most_waiting_s: float,
    ) -> None:
        self.latency = latency
        self.budget = Budget(frames, latency.worst_ms)
        self._places, self._seat, self._quanta = places, seat, quanta
        self._most_waiting_s = most_waiting_s
        self._held = quanta.start()
        self._accepted_samples = 0
        self._began: float | None = None
        self._finished = False
        self._cutting = threading.Lock()  # held while samples become quanta: they stay in order
        self._process = os.getpid()

    @property
    def waiting_s(self) -> float:
        """Seconds of audio that were accepted and are not yet computed; 0 when it has ended.

        It includes what cannot be computed yet: less than a quantum, and the resampler's context.
        """
        if self.closed:
            return 0.0
        heard_s = self._seat.reading.heard_samples / self._quanta.resampler.to
        return max(0.0, self._accepted_samples / self._quanta.resampler.rate - heard_s)

    @property
    def closed(self) -> bool:
        """Whether it is over: its last event is out, or it was closed, or it failed."""
        return self._seat.closed

    @property
    def error(self) -> Exception | None:
        """What ended it early; None if nothing did."""
        return self._seat.error

    def accept(self, samples: ArrayLike) -> None:
        """Bring more samples; never waits. Their events are delivered in the engine's thread.

        Args:
            samples: (n,) floating point in [-1, 1] or int16, any n ≥ 0, at the rate of this stream.

        Raises:
            NearfutureError: for samples of another kind or not finite, and if too much audio would
                wait (the stream is unchanged); after `finish` or `close`, and if it has failed.
        """
        self._refuse_in_a_child()
        since = perf_counter()
        pcm = as_samples(samples)
        with self._cutting:
            self._refuse_if_over()
            self._refuse_if_too_much(len(pcm))
            if self._began is None:
                self._began = since
            cut, self._held = self._quanta.step(pcm, self._held)
            self._accepted_samples += len(pcm)
            early = self._early(since)
            quanta = [Quantum(one, since, tail=False, early=early) for one in cut]
            # Still under the lock: of two threads that accept at once, one is the first.
            self._places.enqueue(self._seat, quanta, took_s=perf_counter() - since)

    def finish(self) -> None:
        """End the stream: when all that waits is computed, an event with `final=True` comes.

        Raises:
            NearfutureError: if the stream has ended already, was closed, or has failed.
        """
        self._refuse_in_a_child()
        since = perf_counter()
        with self._cutting:
            self._refuse_if_over()
            self._finished = True
            early = self._early(since)
            cut = self._quanta.finish(self._held)
            rest = [Quantum(one, since, tail=True, early=early) for one in cut]
            self._places.end(self._seat, rest, since=since, early=early)

    def close(self) -> None:
        """Forget the stream: its place is free at once, and what waits is not computed.

        An event that is already on its way may still be delivered. Closing twice does nothing.
        """
        if os.getpid() == self._process:
            self._places.leave(self._seat)

    def _early(self, now: float) -> bool:
        """Whether the audio is well ahead of a speaker who began with the first sample."""
        spoken_s = self._accepted_samples / self._quanta.resampler.rate
        return self._began is not None and self._began + spoken_s > now + _EARLY_S

    def _refuse_if_over(self) -> None:
        if self._seat.error is not None:
            raise NearfutureError(
                f"this stream has failed ({self._seat.error}): open another one"
            ) from self._seat.error
        if self._finished or self._seat.closed:
            raise NearfutureError("this stream has ended: open another one with Dispatcher.open()")

    def _refuse_if_too_much(self, samples: int) -> None:
        waiting_s = self.waiting_s
        new_s = samples / self._quanta.resampler.rate
        if waiting_s + new_s > self._most_waiting_s:
            raise NearfutureError(
                f"{waiting_s:.1f} s of audio wait to be computed, and {new_s:.1f} s more would be "
                f"over the {self._most_waiting_s:g} s that may: bring it in pieces, as fast as it "
                f"is computed (see waiting_s)"
            )

    def _refuse_in_a_child(self) -> None:
        if os.getpid() != self._process:
            raise NearfutureError(
                "this stream belongs to the process that opened it: make a Dispatcher after fork"
            )
