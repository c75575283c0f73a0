"""File descriptors: as many as the limits of a server need, or lower limits."""

from __future__ import annotations

import dataclasses

from nearfuture.serving.limits import Limits

_OWN = 64  # listening sockets, models, logs, decoders

_EACH = 2  # a socket, and a file for what it uploads


def needed(limits: Limits) -> int:
    """How many descriptors a server with these limits has open at most.

    >>> needed(Limits(most_connections=1000, most_idle=256))
    2320
    """
    return _OWN + limits.most_idle + _EACH * limits.most_connections


def affordable(limits: Limits) -> Limits:
    """The limits that this process can keep, after it has been given all that it may have.

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
    want = needed(limits)
    if soft != resource.RLIM_INFINITY and soft < want:
        soft = want if hard == resource.RLIM_INFINITY else min(want, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= want:
        return limits
    idle = min(limits.most_idle, soft // 4)
    connections = max(1, (soft - _OWN - idle) // _EACH)
    return dataclasses.replace(limits, most_idle=idle, most_connections=connections)
