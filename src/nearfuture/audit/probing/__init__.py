"""Which inputs an output depends on, measured by replacing input frames."""

from nearfuture.audit.probing.experiment import smallest_experiment
from nearfuture.audit.probing.extrapolation import extrapolate
from nearfuture.audit.probing.matrix import dependency_matrix, frames_ahead, last_dependency
from nearfuture.audit.probing.probes import Probes
from nearfuture.audit.probing.search import FarthestDependency, farthest_dependency

__all__ = [
    "FarthestDependency",
    "Probes",
    "dependency_matrix",
    "extrapolate",
    "farthest_dependency",
    "frames_ahead",
    "last_dependency",
    "smallest_experiment",
]
