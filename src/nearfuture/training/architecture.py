"""The architectures of the models that a training is asked for."""

from __future__ import annotations

from nearfuture.budget import PRESETS, RecognizerConfig
from nearfuture.error import NearfutureError
from nearfuture.runtime import Bundle
from nearfuture.training.options import (
    BIDIRECTIONAL,
    STREAMING,
    ArchitectureOptions,
    TrainingOptions,
)

_RESEARCH = "deep-speech-2-research"


def model_names(options: ArchitectureOptions) -> tuple[str, ...]:
    """The models to train, the teacher first."""
    if options.models != "both":
        return (options.models,)
    if options.init_from is not None:
        return (Bundle.open(options.init_from).manifest.kind,)
    return (BIDIRECTIONAL,) if options.preset == _RESEARCH else (BIDIRECTIONAL, STREAMING)


def architectures(
    options: ArchitectureOptions, training: TrainingOptions, symbols: tuple[str, ...] = ()
) -> dict[str, RecognizerConfig]:
    """Return the architecture of each model by its name.

    Args:
        options: What is asked for.
        training: Whether there is dropout, and what only a streaming model can be trained with.
        symbols: The characters that the texts are written with.

    Raises:
        NearfutureError: The preset has no streaming model; or a bundle is trained on that cannot
            write the symbols or is not what is asked for.
    """
    names = model_names(options)
    if options.init_from is not None:
        config = _of_bundle(options, names, symbols)
    else:
        config = PRESETS[options.preset or "small"](symbols=symbols)
        config = config if options.rate is None else config.replace(rate=options.rate)
        if STREAMING in names and config.bidirectional:
            raise NearfutureError(
                f"`preset={options.preset}` is bidirectional and cannot stream; choose "
                f"`preset=deep-speech-2-deployed` or `models=bidirectional`",
                code="unsupported",
                parameter="preset",
            )
        if options.heads is not None and not config.bidirectional:
            config = config.replace(heads=options.heads)
    distillation = training.distillation
    if STREAMING not in names and (
        distillation.distill or distillation.shifts or distillation.delay_penalty or options.heads
    ):
        raise NearfutureError(
            "`heads`, `distill`, `shifts` and `delay_penalty` are about the streaming model, which "
            "is not trained: leave them out",
            code="conflict",
            parameter="models",
        )
    distillation.check_heads(config.heads)
    if not training.regularise:
        config = config.replace(dropout=0.0)
    return {name: config if name == STREAMING else config.twin() for name in names}


def _of_bundle(
    options: ArchitectureOptions, names: tuple[str, ...], symbols: tuple[str, ...]
) -> RecognizerConfig:
    source = options.init_from
    assert source is not None
    if options.preset is not None:
        raise NearfutureError(
            f"`init_from={source}` has a size of its own: leave `preset` out",
            code="conflict",
            parameter="preset",
        )
    manifest = Bundle.open(source).manifest
    config = manifest.architecture
    if names != (manifest.kind,):
        raise NearfutureError(
            f"{source} is a {manifest.kind} model, which is trained on alone: choose "
            f"`models={manifest.kind}`",
            code="conflict",
            parameter="models",
        )
    for name, asked, own in (
        ("rate", options.rate, config.features.rate),
        ("heads", options.heads, config.heads),
    ):
        if asked is not None and asked != own:
            raise NearfutureError(
                f"the model of {source} has `{name}` {own} and keeps it: leave `{name}` out, or "
                f"`init_from` to begin afresh",
                code="conflict",
                parameter=name,
            )
    if unknown := sorted(set(symbols) - set(config.symbols)):
        raise NearfutureError(
            f"the texts have characters that {source} cannot write, "
            f"{' '.join(map(repr, unknown))}; it writes {''.join(config.symbols)!r}. Spell them "
            f"with those, or leave `init_from` out to begin afresh",
            code="unsupported",
            parameter="init_from",
        )
    return config
