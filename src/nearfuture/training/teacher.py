"""A teacher: a model whose distributions another one learns, frame by frame."""

from __future__ import annotations

import hashlib

import torch

from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.training.options import DistillationOptions


def check_teacher(
    teacher: Recognizer | None, model: Recognizer, options: DistillationOptions
) -> None:
    """Refuse a teacher that cannot teach this model, or options without one.

    Raises:
        NearfutureError: The teacher has several heads, or other features or symbols; it has no
            weight, or there is a weight without it.
    """
    if teacher is None and options.weight:
        raise NearfutureError(
            f"`distill={options.weight}` has no effect without a teacher",
            code="conflict",
            parameter="distill",
        )
    if teacher is not None and not options.weight:
        raise NearfutureError(
            "a teacher has no effect with `distill=0`: give it a weight, e.g. 1.0",
            code="conflict",
            parameter="distill",
        )
    options.check_heads(model.config.heads)
    if teacher is None:
        return
    if len(teacher.config.heads) > 1:
        raise NearfutureError(
            f"a teacher has one head, not {len(teacher.config.heads)}: take a bidirectional model",
            code="unsupported",
        )
    student = _interface(model)
    for name, theirs in _interface(teacher).items():
        if theirs != (ours := student[name]):
            raise NearfutureError(
                f"a teacher has the same {name} as the model it teaches: {theirs} is not {ours}",
                code="unsupported",
            )


def _interface(model: Recognizer) -> dict[str, object]:
    """Return what a teacher and its student have to have in common."""
    config = model.config
    return {
        "symbols": config.symbols,
        "rate": config.features.rate,
        "window_ms": config.features.window_ms,
        "frame_ms": config.frame_ms,
    }


def initialise_from_teacher(model: Recognizer, teacher: Recognizer) -> None:
    """Copy a bidirectional teacher without its backward direction into a streaming model.

    Every parameter of the teacher, and the normalisation of its features, is copied where the model
    has one of that name and shape; what only the model has, its lookahead, stays as it is.

    >>> from nearfuture.budget import small
    >>> config = small()
    >>> model, teacher = Recognizer(config), Recognizer(config.twin())
    >>> initialise_from_teacher(model, teacher)
    >>> theirs = teacher.get_parameter("encoder.layers.2.inner.layers.1.ahead.weight_hh")
    >>> torch.equal(model.get_parameter("encoder.layers.2.inner.layers.1.weight_hh"), theirs)
    True
    """
    own = model.state_dict()
    with torch.no_grad():
        for name, value in teacher.state_dict().items():
            parameter = own.get(name.replace(".ahead.", "."))
            if parameter is not None and parameter.shape == value.shape:
                parameter.copy_(value)


def same_features(teacher: Recognizer, model: Recognizer) -> bool:
    """Whether both compute the same features of the same samples, so that once is enough.

    >>> from nearfuture.budget import small
    >>> config = small()
    >>> same_features(Recognizer(config.twin()), Recognizer(config))
    True
    """
    theirs, ours = teacher.features, model.features
    return (
        type(theirs) is type(ours)
        and (theirs.stride, theirs.floor) == (ours.stride, ours.floor)
        and all(map(torch.equal, theirs.buffers(), ours.buffers()))
    )


def fingerprint(model: Recognizer) -> str:
    """Compute a digest of what a model has learnt."""
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().numpy().tobytes())
    return digest.hexdigest()
