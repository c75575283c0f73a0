"""Random stacks of layers that are right, with one leak planted at a random place.

What an audit has to say follows from how the stack was made: the kind of the finding, the place and
the operation where it enters, and the lookahead. The same stack without the leak has to pass.
"""

import copy
import math
import random
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nearfuture import audit
from nearfuture.audit import Report
from tests.audit.leaks import LEAKS, Leak
from tests.audit.stacks import Layer, Model, Residual, Stack, drawn

KINDS = tuple(LEAKS)

_MOST = 3
"""How far a layer without a leak may look ahead; a leak looks farther."""

_FOUND = {
    "future": {"future"},
    "norm": {"normalisation", "future"},
    "padding": {"padding"},
    "batch": {"batch"},
    "state": {"state"},
}


@dataclass(frozen=True)
class WrongComposition:
    """A model with one leak, and the same without.

    Attributes:
        seed: what it was drawn with.
        leak: the leak.
        wrong: the model that has it.
        right: the model that has not.
        where: path of the submodule with the leak.
        example: (N, T, C).
        lengths: valid frames of each row, where the model is told.
    """

    seed: int
    leak: Leak
    wrong: Model
    right: Model
    where: str
    example: Tensor
    lengths: list[int] | None

    def report(self, *, wrong: bool = True) -> Report:
        """What the audit says; only lookahead of layers that are right is allowed."""
        kept = self.leak.kind in ("batch", "state")
        options: dict[str, Any] = {"at_most": self.right.lookahead}
        if self.leak.kind == "padding" or (kept and math.isinf(self.right.lookahead)):
            options = {}
        torch.manual_seed(self.seed)
        model = self.wrong if wrong else self.right
        return audit.model(model, self.example, self.lengths, seed=self.seed, **options)

    def faults(self, report: Report) -> dict[str, str]:
        """What an audit of the wrong model got wrong, by "kind", "culprit" and "lookahead"."""
        faults = {}
        broken = [each for each in report.findings if each.severity == "broken"]
        kinds = {each.kind for each in broken}
        allowed = set(_FOUND[self.leak.kind])
        required = set(allowed)
        if self.leak.kind == "norm":  # what is written by hand is called the future
            required = kinds & allowed
        if self.leak.name == "batch norm that trains":
            allowed |= {"batch"}
            required |= {"batch"}
        if self.lengths is not None and self.leak.kind in ("future", "norm"):
            allowed |= {"padding"}
        if not kinds <= allowed or not required or not required <= kinds:
            faults["kind"] = f"{sorted(kinds)} instead of {sorted(required or allowed)}"
        if report.verdict != "broken":
            faults["kind"] = f"the verdict is {report.verdict}"
        for finding in broken:
            culprit = finding.culprit
            operations = self.leak.operations
            if finding.kind == "padding":
                operations += self.leak.padding
            if culprit is None:
                faults["culprit"] = f"no place for {finding.kind}"
            elif culprit.where != self.where or culprit.operation not in operations:
                faults["culprit"] = (
                    f"{finding.kind} enters at {culprit.where} ({culprit.operation}) instead of "
                    f"{self.where} ({', '.join(operations)})"
                )
        if report.lookahead != self.wrong.lookahead:
            faults["lookahead"] = f"{report.lookahead} instead of {self.wrong.lookahead}"
        return faults

    def false_alarms(self, report: Report) -> dict[str, str]:
        """What an audit of the model without the leak got wrong."""
        faults = {}
        if report.verdict != "holds":
            faults["alarm"] = str(report)
        if report.lookahead != self.right.lookahead:
            faults["lookahead"] = f"{report.lookahead} instead of {self.right.lookahead}"
        return faults


def leak_of(seed: int) -> Leak:
    """Return the leak of a seed: kinds come in turn, and the leaks of each kind too."""
    leaks = LEAKS[KINDS[seed % len(KINDS)]]
    return leaks[seed // len(KINDS) % len(leaks)]


def wrong_composition(seed: int) -> WrongComposition:
    """Draw a stack and the place in it for a leak."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    kind = KINDS[seed % len(KINDS)]
    leak = leak_of(seed)
    width = rng.choice([4, 6])
    right = drawn(rng, width, most=_MOST, whole=kind == "padding")
    front = rng.random() < 0.3
    planted = leak.build(rng, width)
    wrong = copy.deepcopy(right)
    places = _places(wrong)
    holder, index = rng.choice(places)
    holder.layers.insert(index, planted)
    _measure(wrong)
    dtype = rng.choice([torch.float32, torch.float32, torch.float64])
    models = []
    for stack in (wrong, right):
        torch.manual_seed(seed)
        models.append(Model(stack, width, front=front).to(dtype).eval())
    for module in models[0].modules():
        if leak.name == "batch norm that trains" and module is planted:
            module.train()
    frames = rng.choice([24, 32, 40]) * (2 if front else 1)
    rows = rng.randint(2, 3) if kind == "padding" or rng.random() < 0.5 else 1
    lengths = None
    if kind == "padding" or (rows > 1 and rng.random() < 0.5):
        lengths = [frames] + [rng.randrange(frames // 2, frames - 2, 2) for _ in range(rows - 1)]
    names = {id(module): name for name, module in models[0].named_modules()}
    where = ".".join(filter(None, (names[id(planted)], leak.where)))
    example = torch.randn(rows, frames, width, dtype=dtype)
    return WrongComposition(seed, leak, *models, where, example, lengths)


def _places(stack: Stack) -> list[tuple[Stack, int]]:
    """Return every place in a stack, those in its residuals too."""
    places = [(stack, index) for index in range(len(stack.layers) + 1)]
    for layer in stack.layers:
        if isinstance(layer, Residual):
            places += _places(layer.inner)
    return places


def _measure(layer: Layer) -> float:
    """Add up how far a stack looks ahead, anew."""
    if isinstance(layer, Residual):
        layer.lookahead = _measure(layer.inner)
    if isinstance(layer, Stack):
        layer.lookahead = sum(_measure(each) for each in layer.layers)
    return layer.lookahead
