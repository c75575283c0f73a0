"""Error rates of a recogniser in torch, head by head, over whole utterances."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nearfuture.data import Utterance
from nearfuture.decoding import greedy_text
from nearfuture.model import Recognizer
from nearfuture.text import ErrorRate, character_errors, word_errors
from nearfuture.training.part import padded


@torch.no_grad()
def evaluate(
    model: Recognizer, utterances: Sequence[Utterance], *, batch_size: int = 32
) -> dict[int | None, tuple[ErrorRate, ErrorRate]]:
    """Word and character errors of every head: `{τ: (words, characters)}`; τ is None for a twin.

    Utterances of like length are heard together, all heads in one pass, where the model is.

    Args:
        model: on any device, in any floating point; in evaluation mode afterwards.
        utterances: at the model's rate.
        batch_size: utterances at once; it changes nothing but the time it takes.
    """
    model.eval()
    heads = model.config.lookaheads
    words = {head: ErrorRate.of([]) for head in heads}
    characters = {head: ErrorRate.of([]) for head in heads}
    home = model.features.mean
    ordered = sorted(utterances, key=lambda one: one.samples.size)
    for start in range(0, len(ordered), batch_size):
        group = ordered[start : start + batch_size]
        pcm, lengths = padded(group)
        features = model.features(pcm.to(home), lengths.to(home.device))
        outputs, counts = model(*features)
        for head, log_probs in zip(heads, outputs, strict=True):
            rows = log_probs.float().cpu().numpy()  # in one go: a device answers slowly
            for row, frames, one in zip(rows, counts.tolist(), group, strict=True):
                heard = greedy_text(row[:frames], model.vocabulary, frame_ms=model.config.frame_ms)
                words[head] += word_errors(one.text, heard)
                characters[head] += character_errors(one.text, heard)
    return {head: (words[head], characters[head]) for head in heads}
