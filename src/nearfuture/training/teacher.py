"""A teacher: a model whose distributions another one learns, frame by frame."""

from __future__ import annotations

import hashlib

import torch

from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.training.options import TrainingOptions


def check_teacher(teacher: Recognizer | None, model: Recognizer, options: TrainingOptions) -> None:
    """Refuse a teacher that cannot teach this model, or options without one.

    Raises:
        NearfutureError: where it has several heads, or hears or writes something else; where it has
            no weight, or there is a weight without it.
    """
    if teacher is None and options.distill:
        raise NearfutureError(f"distill={options.distill} has no effect without a teacher")
    if teacher is not None and not options.distill:
        raise NearfutureError("a teacher has no effect with distill=0: give it a weight, e.g. 1.0")
    if unknown := sorted(set(options.shift_frames) - set(model.config.heads)):
        raise NearfutureError(
            f"shift_frames names heads {unknown}; the model has {list(model.config.heads)}"
        )
    if teacher is None:
        return
    if len(teacher.config.heads) > 1:
        raise NearfutureError(
            f"a teacher has one head, not {len(teacher.config.heads)}: take a bidirectional model"
        )
    for name in ("symbols", "rate", "window_ms", "frame_ms"):
        theirs, ours = getattr(teacher.config, name), getattr(model.config, name)
        if theirs != ours:
            raise NearfutureError(
                f"a teacher has the same {name} as the model it teaches: {theirs} is not {ours}"
            )


def inherit(model: Recognizer, teacher: Recognizer) -> None:
    """Let a streaming model begin as its bidirectional teacher without the backward direction.

    Every parameter of the teacher, and the normalisation of its features, whose place and shape the
    model has; what only the model has, its lookahead, stays as it is.

    >>> from nearfuture.budget import small
    >>> config = small()
    >>> model, teacher = Recognizer(config), Recognizer(config.twin())
    >>> inherit(model, teacher)
    >>> theirs = teacher.get_parameter("encoder.layers.2.inner.layers.1.ahead.weight_hh")
    >>> torch.equal(model.get_parameter("encoder.layers.2.inner.layers.1.weight_hh"), theirs)
    True
    """
    own = model.state_dict()
    with torch.no_grad():
        for name, value in teacher.state_dict().items():
            place = own.get(name.replace(".ahead.", "."))
            if place is not None and place.shape == value.shape:
                place.copy_(value)


def hears_alike(teacher: Recognizer, model: Recognizer) -> bool:
    """Whether both make the same features of the same samples, so that once is enough.

    >>> from nearfuture.budget import small
    >>> config = small()
    >>> hears_alike(Recognizer(config.twin()), Recognizer(config))
    True
    """
    theirs, ours = teacher.features, model.features
    return (
        type(theirs) is type(ours)
        and (theirs.stride, theirs.floor) == (ours.stride, ours.floor)
        and all(map(torch.equal, theirs.buffers(), ours.buffers()))
    )


def fingerprint(model: Recognizer) -> str:
    """A digest of what a model has learnt."""
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().numpy().tobytes())
    return digest.hexdigest()
