"""Small graphs for a page in the browser or a process without torch: exported, and run again.

Shapes: `T` frames or words, `V` vocabulary, `N` samples.

| file | input | output |
|---|---|---|
| `adding.onnx` | `evidence` (1, T, 2) | `p` (1, 7, T): of /t/ by τ, at each frame |
| `adding.json` | | the lookaheads and the schedules of evidence |
| `voicing/` | a bundle for `nearfuture.load`: PCM | log-probabilities of blank, d, t for each τ |
| `tagger-WORD-KIND.onnx` | `words` (1, T, V) one-hot | `p` (1, T): of the second sense |
| `tagger-WORD.json` | | vocabulary, senses and sentences of the word |
| `continuum/vot-000.wav` … | | the sounds that `voicing/` is asked about |
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from torch import Tensor, nn

from nearfuture.export import ModelCard, export_bundle
from nearfuture.export.graphs.offline import OnnxRecurrence
from nearfuture.layers import Bidirectional, Lookahead, Recurrent, StreamingLayer
from nearfuture.model import Recognizer
from recipes.compact import compact
from recipes.evidence.construction import FRAME_MS, LOOKAHEADS, SCHEDULES
from recipes.evidence.plosives import BEFORE_MS, RATE, VOWELS, Voices, synthesise
from recipes.evidence.sentences import AmbiguousWord, Sentence
from recipes.evidence.tagger import Tagger

CONTINUUM_MS = tuple(range(0, 101, 10))
_EXAMPLE_STEPS = 6


class Probability(nn.Module):
    """A layer over whole sequences, and the probability of one of its two outputs.

    `p_t = softmax(y_t)_choice`, with y the output of the layer on (1, T, D). Recurrent layers
    become ONNX's own operator, so that T stays free: it exists only inside an export.

    Args:
        layer: with two outputs; it is not changed.
        choice: 0 or 1.
    """

    def __init__(self, layer: StreamingLayer, choice: int) -> None:
        super().__init__()
        self.layer = copy.deepcopy(layer)
        self.choice = choice
        for parent in list(self.layer.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, Recurrent | Bidirectional):
                    setattr(parent, name, OnnxRecurrence(child))

    def forward(self, x: Tensor) -> Tensor:
        """(1, T, D) in, (1, T) out."""
        lengths = torch.full((1,), x.shape[1], dtype=torch.int64)
        y, _ = self.layer(x, lengths)
        return y.softmax(dim=-1)[..., self.choice]


class Adding(nn.Module):
    """The row convolutions of ones of several lookaheads: the probability of /t/ at every frame.

    Args:
        lookaheads: τ of each.
    """

    def __init__(self, lookaheads: Sequence[int]) -> None:
        super().__init__()
        self.layer = Lookahead(2, lookaheads)
        for weight in self.layer.weights:
            nn.init.ones_(weight)

    def forward(self, evidence: Tensor) -> Tensor:
        """(1, T, 2) in, (1, τ, T) out."""
        lengths = torch.full((1,), evidence.shape[1], dtype=torch.int64)
        sums = torch.stack(self.layer.all(evidence, lengths), dim=1)
        return sums.softmax(dim=-1)[..., 0]


def export_graph(module: nn.Module, path: Path, *, name: str, features: int) -> None:
    """Write a module as a graph of any number of steps, its input (1, T, features) called `name`.

    Its large weights are stored in eight bits. Traces of source files, which the exporter writes
    into every node, are removed.
    """
    program = torch.onnx.export(
        module.eval(),
        (torch.zeros(1, _EXAMPLE_STEPS, features),),
        input_names=[name],
        output_names=["p"],
        dynamic_shapes=({1: torch.export.Dim("steps")},),
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    model = program.model_proto
    graph = model.graph
    model.doc_string = graph.doc_string = ""
    del model.metadata_props[:], graph.metadata_props[:], graph.value_info[:]
    for part in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        part.doc_string = ""
        del part.metadata_props[:]
    compact(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())


def export_construction(folder: Path) -> None:
    """Write the row convolutions of ones, and the schedules of evidence they are shown."""
    export_graph(Adding(LOOKAHEADS), folder / "adding.onnx", name="evidence", features=2)
    _write_json(
        folder / "adding.json",
        {
            "lookaheads": LOOKAHEADS,
            "frame_ms": FRAME_MS,
            "schedules": {each.name: each.evidence for each in SCHEDULES},
        },
    )


def export_taggers(word: AmbiguousWord, taggers: Mapping[str, Tagger], folder: Path) -> None:
    """Write the taggers of a word, and what they read: vocabulary, senses, sentences."""
    for kind, tagger in taggers.items():
        path = folder / f"tagger-{word.file}-{kind.replace(' ', '-')}.onnx"
        module = Probability(tagger.layer, choice=1)
        export_graph(module, path, name="words", features=len(tagger.vocabulary))
    about = {
        "word": word.name,
        "language": word.language,
        "senses": word.senses,
        "vocabulary": word.vocabulary,
        "kinds": list(taggers),
        "sentences": [
            {"words": each.words, "target": each.target, "cue": each.cue, "sense": each.sense}
            for each in (*word.examples, *_varied(word))
        ],
        "licence": "Apache-2.0, written for this project",
    }
    _write_json(folder / f"tagger-{word.file}.json", about)


def export_voicing(model: Recognizer, folder: Path, *, training: Mapping[str, Any]) -> None:
    """Write the recogniser of /t/ and /d/ as a bundle, and the sounds of one voice as WAV files."""
    card = ModelCard(
        name="voicing",
        description="Tells /t/ from /d/ at the burst, in frames of 10 ms, on synthesised speech.",
        training=dict(training),
    )
    export_bundle(model, folder / "voicing", card)
    write_continuum(folder / "continuum")


def write_continuum(folder: Path, onsets_ms: Iterable[int] = CONTINUUM_MS) -> list[Path]:
    """Write one voice saying /dɑ/ to /tɑ/, a file for each onset of voicing: 8 kHz, 16 bits."""
    onsets = np.array(list(onsets_ms))
    voice = Voices(
        pitch_hz=np.array([118.0]),
        tract=np.array([1.0]),
        vowel=np.array([VOWELS.index("ɑ")]),
        burst=np.array([1.2]),
        aspiration=np.array([1.0]),
        room_db=np.array([-45.0]),
        gain_db=np.array([0.0]),
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for onset in onsets:  # the same noise each time: nothing differs but the onset
        samples = synthesise(np.array([onset]), voice, np.random.default_rng(1))[0]
        path = folder / f"vot-{onset:03d}.wav"
        soundfile.write(path, samples, RATE, subtype="PCM_16")
        paths.append(path)
    about = {
        "made by": "python -m recipes.evidence export",
        "licence": "Apache-2.0, synthesised for this project",
        "burst_ms": BEFORE_MS,
        "onsets_ms": onsets.tolist(),
    }
    _write_json(folder / "about.json", about)
    return paths


def _varied(word: AmbiguousWord, count: int = 10) -> list[Sentence]:
    """Test sentences of both senses, with the evidence before the word and behind it."""
    rng = np.random.default_rng(1)
    before, behind = word.before("test"), word.behind("test")
    return [
        choices[int(rng.integers(len(choices)))]
        for number in range(count)
        for choices in [before if number % 5 == 0 else behind]
    ]


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
