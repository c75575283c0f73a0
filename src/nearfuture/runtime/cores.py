"""How many threads are worth it on this machine: the physical cores this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_GROUPS = Path("/sys/fs/cgroup")


def physical_cores(*, cpus: Path = _CPUS, groups: Path = _GROUPS) -> int:
    """Count the physical cores that affinity and the control group's quota leave to this process.

    Two hyper-threads of a core share the units that multiply, so a second thread there only makes
    the first one wait.

    Args:
        cpus: where Linux describes its processors.
        groups: where it describes quotas.

    >>> physical_cores() >= 1
    True
    """
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
    cores = len({_siblings(cpus, cpu) for cpu in allowed})
    return max(1, math.ceil(min(cores, _quota(groups))))


def _siblings(cpus: Path, cpu: int) -> str:
    try:
        return (cpus / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text("ascii").strip()
    except OSError:
        return str(cpu)


def _quota(groups: Path) -> float:
    """Return how many processors' time this process may take; infinite without a limit."""
    v1, v2 = groups / "cpu", groups / "cpu.max"  # the two versions of control groups
    try:
        if v2.exists():
            quota, period = v2.read_text("ascii").split()
        else:
            quota = (v1 / "cpu.cfs_quota_us").read_text("ascii")
            period = (v1 / "cpu.cfs_period_us").read_text("ascii")
        share = float(quota) / float(period)  # "max", or -1, is no limit
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
    return share if share > 0 else math.inf
