"""Error rates of a recogniser in torch, head by head, over whole utterances."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nearfuture.data import Utterance
from nearfuture.decoding import greedy_text
from nearfuture.model import Recognizer
from nearfuture.text import ErrorRate, character_errors, word_errors
from nearfuture.training.local_batch import pad


@torch.no_grad()
def evaluate(
    model: Recognizer, utterances: Sequence[Utterance], *, batch_size: int = 32
) -> dict[int | None, tuple[ErrorRate, ErrorRate]]:
    """Count word and character errors of every head.

    Utterances of like length are recognised together, all heads in one pass, on the model's device.

    Args:
        model: On any device, in any floating point; in evaluation mode afterwards.
        utterances: At the model's rate.
        batch_size: Utterances in a pass; it changes nothing but the time it takes.

    Returns:
        `{lookahead in frames: (word errors, character errors)}`; the lookahead of a bidirectional
        model is None.
    """
    model.eval()
    heads = model.config.lookaheads
    words = {head: ErrorRate.of([]) for head in heads}
    characters = {head: ErrorRate.of([]) for head in heads}
    parameters, frame_ms = model.features.mean, model.config.frame_ms
    ordered = sorted(utterances, key=lambda utterance: utterance.samples.size)
    for start in range(0, len(ordered), batch_size):
        batch = ordered[start : start + batch_size]
        pcm, lengths = pad(batch)
        features = model.features(pcm.to(parameters), lengths.to(parameters.device))
        outputs, counts = model(*features)
        for head, output in zip(heads, outputs, strict=True):
            rows = output.float().cpu().numpy()  # in one go: a device answers slowly
            for row, frames, utterance in zip(rows, counts.tolist(), batch, strict=True):
                log_probs = row[:frames]
                hypothesis = greedy_text(log_probs, model.vocabulary, frame_ms=frame_ms)
                words[head] += word_errors(utterance.text, hypothesis)
                characters[head] += character_errors(utterance.text, hypothesis)
    return {head: (words[head], characters[head]) for head in heads}


def head_name(frames: int | None) -> str:
    """Name a head in metrics.

    >>> head_name(8), head_name(None)
    ('lookahead_8', 'full_context')
    """
    return "full_context" if frames is None else f"lookahead_{frames}"


def validate(model: Recognizer, utterances: Sequence[Utterance]) -> dict[str, float]:
    """Compute the metrics of a model: its character error rate, the mean and that of each head."""
    rates = {head: characters.rate for head, (_, characters) in evaluate(model, utterances).items()}
    of_heads = {f"cer_{head_name(head)}": rate for head, rate in rates.items()}
    return {"cer": sum(rates.values()) / len(rates), **of_heads}
