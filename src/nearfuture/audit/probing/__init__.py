"""Which inputs an output depends on, measured by replacing input frames."""

from nearfuture.audit.probing.experiment import smallest_experiment
from nearfuture.audit.probing.matrix import dependency_matrix, frames_ahead, last_seen
from nearfuture.audit.probing.probes import Probes
from nearfuture.audit.probing.search import FarthestLook, extrapolate, farthest_look

__all__ = [
    "FarthestLook",
    "Probes",
    "dependency_matrix",
    "extrapolate",
    "farthest_look",
    "frames_ahead",
    "last_seen",
    "smallest_experiment",
]
