"""What one server allows; nothing heavy is imported here, so that the command line can read it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from nearfuture.error import NearfutureError

_MIN_WAITING_S = 1.0  # what is accepted at once, and what a resampler holds back, must fit
_OWN_DESCRIPTORS = 64  # listening sockets, models, logs, decoders
_DESCRIPTORS_EACH = 3  # a socket, a file for what it uploads, and a socket that is being closed


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """The limits of one server, each of memory or of time.

    Attributes:
        max_streams: Streams open at once, over all models and protocols.
        max_connections: Requests and websockets at once, over all ports.
        max_idle_sockets: Sockets without a request; beyond it the oldest is closed.
        max_stream_s: Audio in one stream, and life of one connection, in seconds.
        max_message_bytes: Size of one message on a websocket.
        max_file_bytes: Size of one uploaded recording.
        max_upload_s: Audio in one uploaded recording, however few bytes it has, in seconds.
        max_waiting_s: Queued audio of one stream, in seconds, at least 1; beyond it the
            server stops reading from that client.
        max_unread: Finished utterances that a client has not read; beyond it the server stops
            reading from that client.
        headers_s: Seconds until a new or idle socket must have sent the headers of a request.
        idle_s: Seconds without a message from a client, or without progress of one to it.
        drain_s: Seconds from SIGTERM to the end of the process; streams continue until then, and
            then get their last text.
        final_results_s: How many of the drain seconds are for the last results of open streams.

    Raises:
        NearfutureError: for a limit that is not a positive number, and for less that may wait.
    """

    max_streams: int = 100
    max_connections: int = 1000
    max_idle_sockets: int = 256
    max_stream_s: float = 14_400.0
    max_message_bytes: int = 1 << 20
    max_file_bytes: int = 25 << 20
    max_upload_s: float = 7200.0
    max_waiting_s: float = 60.0
    max_unread: int = 64
    headers_s: float = 15.0
    idle_s: float = 60.0
    drain_s: float = 30.0
    final_results_s: float = 4.0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            least = {"max_waiting_s": _MIN_WAITING_S, "drain_s": 0.0}.get(name)
            valid = value > 0 if least is None else value >= least
            if not (valid and math.isfinite(value)):
                wanted = "above 0" if least is None else f"from {least:g}"
                raise NearfutureError(
                    f"`{name}` is {value:g}: a finite number {wanted} is expected",
                    code="out_of_range",
                    parameter=name,
                )


def needed_descriptors(limits: ServerLimits) -> int:
    """Return how many file descriptors a server with these limits has open at most.

    >>> needed_descriptors(ServerLimits(max_connections=1000, max_idle_sockets=256))
    3320
    """
    sockets = limits.max_idle_sockets + _DESCRIPTORS_EACH * limits.max_connections
    return _OWN_DESCRIPTORS + sockets


def within_descriptors(limits: ServerLimits) -> ServerLimits:
    """Raise the soft limit of file descriptors as far as needed, and return what it allows.

    Args:
        limits: those asked for.

    Returns:
        The same, or with fewer connections where the hard limit of the process is too low.
    """
    try:
        import resource
    except ImportError:  # there is no such limit on this system
        return limits
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = needed_descriptors(limits)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return limits
    idle = min(limits.max_idle_sockets, soft // 4)
    connections = max(1, (soft - _OWN_DESCRIPTORS - idle) // _DESCRIPTORS_EACH)
    return dataclasses.replace(limits, max_idle_sockets=idle, max_connections=connections)
