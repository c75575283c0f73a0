"""Google's SequenceLayers checks its layers too: what its checker and our laws say of wrong ones.

Every wrong layer is written twice, once in each library, with the same arithmetic and with the
field that a mistaken author would declare: one frame. SequenceLayers judges with `verify_contract`,
as its own tests call it and in eleven more settings; we judge with `laws.check`. A layer that has
no step is judged whole: by all that `verify_contract` does then, and by our law 8.

    make compare

The package is no dependency of ours: `make compare` gives it an environment of its own.
"""

import itertools
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import sequence_layers.jax as sl
    from sequence_layers.jax import test_utils
except ModuleNotFoundError as missing:
    print(
        f"{missing}: the comparison needs an environment of its own, which `make compare` builds\n"
        "in .venv-compare before it runs this script there. By hand, in a fresh environment:\n\n"
        "    pip install torch==2.13.0 -e '.[laws]' -r benchmarks/against_sequence_layers.txt",
        file=sys.stderr,
    )
    sys.exit(2)

import torch
from _report import emit
from rich.table import Table
from torch import Tensor, nn

from nearfuture import laws
from nearfuture.budget import ReceptiveField
from nearfuture.laws import LawBroken
from nearfuture.layers import Convolution, Pointwise, State, StreamingLayer
from nearfuture.layers.ragged import mask
from nearfuture.layers.windowed import Windowed

# In SequenceLayers. `StatelessPointwise` declares the field (0, 0) and no latency, and steps by
# calling `layer` on each block.


class Theirs(sl.PreservesType, sl.StatelessPointwise):
    """One frame in, one frame out, it says; `steps=False` if it has `layer` alone."""

    steps: bool = True

    @property
    def supports_step(self) -> bool:
        return self.steps

    @sl.check_layer
    def layer(self, x: sl.Sequence, *, training: bool, constants: Any = None) -> sl.Sequence:
        x = x.mask_invalid()
        return sl.Sequence(self.values(x), x.mask).mask_invalid()

    def values(self, x: sl.Sequence) -> jax.Array:
        return 1.1 * x.values


def _next(values: jax.Array) -> jax.Array:
    return jnp.concatenate([values[:, 1:], jnp.zeros_like(values[:, :1])], axis=1)


class TheirNext(Theirs):
    def values(self, x: sl.Sequence) -> jax.Array:
        return x.values + 0.1 * _next(x.values)


class TheirSign(Theirs):
    def values(self, x: sl.Sequence) -> jax.Array:
        return x.values * (1 + 0.1 * jnp.sign(_next(x.values)))


class TheirLateSign(TheirSign):
    """Streams: waits for the next frame, and declares that latency."""

    @property
    def input_latency(self) -> int:
        return 1

    def get_initial_state(
        self, batch_size: int, input_spec: Any, *, training: bool, constants: Any = None
    ) -> sl.Sequence:
        shape = (batch_size, 1, *input_spec.shape)
        return sl.Sequence(jnp.zeros(shape, input_spec.dtype), jnp.zeros((batch_size, 1), bool))

    @sl.check_step
    def step(
        self, x: sl.Sequence, state: sl.Sequence, *, training: bool, constants: Any = None
    ) -> tuple[sl.Sequence, sl.Sequence]:
        x = x.mask_invalid()
        values = jnp.concatenate([state.values, x.values], axis=1)
        valid = jnp.concatenate([state.mask, x.mask], axis=1)
        y = values[:, :-1] * (1 + 0.1 * jnp.sign(values[:, 1:]))
        return sl.Sequence(y, valid[:, :-1]), sl.Sequence(values[:, -1:], valid[:, -1:])


class TheirLength(Theirs):
    def values(self, x: sl.Sequence) -> jax.Array:
        return x.values / jnp.maximum(x.lengths(), 1)[:, None, None]


class TheirMean(Theirs):
    def values(self, x: sl.Sequence) -> jax.Array:
        count = jnp.maximum(x.lengths(), 1)[:, None, None]
        return x.values - jax.lax.stop_gradient(x.values.sum(axis=1, keepdims=True) / count)


class TheirWrongFrom(Theirs):
    """`step` is wrong for blocks of `frames` and more."""

    frames: int = 2

    @sl.check_step
    def step(
        self, x: sl.Sequence, state: Any, *, training: bool, constants: Any = None
    ) -> tuple[sl.Sequence, Any]:
        y = self.layer(x, training=training)
        return y.apply_values(lambda v: v * (1.5 if x.shape[1] >= self.frames else 1)), state


# The same in ours. `Pointwise` declares the field `left=0, right=0` and steps by calling `forward`.


class Ours(Pointwise):
    def __init__(self) -> None:
        super().__init__(nn.Identity(), 2)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return mask(self.values(mask(x, lengths), lengths), lengths), lengths

    def values(self, x: Tensor, lengths: Tensor) -> Tensor:
        return 1.1 * x


def _following(x: Tensor) -> Tensor:
    return torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], dim=1)


class OurNext(Ours):
    def values(self, x: Tensor, lengths: Tensor) -> Tensor:
        return x + 0.1 * _following(x)


class OurSign(Ours):
    def values(self, x: Tensor, lengths: Tensor) -> Tensor:
        return x * (1 + 0.1 * torch.sign(_following(x)))


class OurLateSign(Windowed):
    def __init__(self) -> None:
        super().__init__(2, 2, right=1)
        self.field = ReceptiveField()

    def slide(self, frames: Tensor) -> Tensor:
        return frames[:, :-1] * (1 + 0.1 * torch.sign(frames[:, 1:]))


class OurLength(Ours):
    def values(self, x: Tensor, lengths: Tensor) -> Tensor:
        return x / lengths.clamp(min=1)[:, None, None]


class OurMean(Ours):
    def values(self, x: Tensor, lengths: Tensor) -> Tensor:
        mean = x.sum(dim=1, keepdim=True) / lengths.clamp(min=1)[:, None, None]
        return x - mean.detach()


class OurWrongFrom(Ours):
    def __init__(self, frames: int) -> None:
        super().__init__()
        self.frames = frames

    def step(self, x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        y, n = self(x, lengths)
        return y * (1.5 if x.shape[1] >= self.frames else 1), n, state


@dataclass(frozen=True)
class Case:
    """One layer in both libraries."""

    name: str
    form: str
    theirs: Any
    ours: Callable[[], StreamingLayer]
    expected: bool | None = None
    """What their checker must say for the comparison to mean anything; None where we ask."""
    right: bool = False


STEPS, LATE, WHOLE = "steps", "late", "whole"
FORMS = (
    "steps: streams, chunk by chunk. late: a frame late (theirs declares input_latency 1). "
    "whole: has no step (theirs declares supports_step False; ours is judged by law 8 alone)."
)
CASES = [
    Case("right: × 1.1", STEPS, Theirs(), Ours, expected=True, right=True),
    Case("right: × 1.1", WHOLE, Theirs(steps=False), Ours, expected=True, right=True),
    Case(
        "right: causal convolution",
        STEPS,
        sl.Conv1D.Config(filters=2, kernel_size=3, padding="causal").make(),
        lambda: Convolution(2, 2, left=2),
        expected=True,
        right=True,
    ),
    Case(
        "control: step × 1.5 from 2 frames",
        STEPS,
        TheirWrongFrom(frames=2),
        lambda: OurWrongFrom(2),
        expected=False,
    ),
    Case("control: plus the next frame", STEPS, TheirNext(), OurNext, expected=False),
    Case("control: plus the next frame", WHOLE, TheirNext(steps=False), OurNext, expected=False),
    Case("(a) × sign of the next frame", STEPS, TheirSign(), OurSign),
    Case("(a) × sign of the next frame", WHOLE, TheirSign(steps=False), OurSign),
    Case("(a) × sign of the next frame", LATE, TheirLateSign(), OurLateSign),
    Case("(b) ÷ length of the utterance", STEPS, TheirLength(), OurLength),
    Case("(b) ÷ length of the utterance", WHOLE, TheirLength(steps=False), OurLength),
    Case("(c) − mean over time, detached", STEPS, TheirMean(), OurMean),
    Case("(c) − mean over time, detached", WHOLE, TheirMean(steps=False), OurMean),
    Case("step × 1.5 from 3 frames", STEPS, TheirWrongFrom(frames=3), lambda: OurWrongFrom(3)),
]


def settings() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Inputs and options of `verify_contract`: first those of its own tests.

    All its checks are on by default, and the receptive field must be exact. What is left to vary
    are the inputs, training, what the padding holds, and compilation.
    """
    kinds: list[dict[str, Any]] = [{}, {"random_lengths": False}, {"random_mask": True}]
    for kind, training in itertools.product(kinds, (False, True)):
        for padding, jit in ((np.nan, False), (1e9, True)):
            yield kind, {"training": training, "padding_invariance_pad_value": padding, "jit": jit}


def their_verdict(layer: Any) -> dict[str, Any]:
    """Whether every setting passes; else the check of `verify_contract` that fails, and how."""
    count = 0
    for count, (kind, options) in enumerate(settings(), start=1):
        test = test_utils.SequenceLayerTest()
        test.setUp()  # fixes the seeds
        x = test_utils.random_sequence(2, 13, 2, **kind)
        bound = test.init_and_bind_layer(jax.random.PRNGKey(1234), layer, x)
        try:
            test.verify_contract(bound, x, **options)
        except AssertionError as error:
            frames = traceback.extract_tb(error.__traceback__)
            place = next(f for f in reversed(frames) if f.name == "verify_contract")
            check = (place.line or "").removeprefix("self.").replace(", rtol=rtol, atol=atol", "")
            first = next(line.strip() for line in str(error).splitlines() if line.strip())
            which = "as its tests call it" if count == 1 else f"{kind} {options}"
            says = f"{check} in line {place.lineno}: {first}"
            return {"passes": False, "settings": which, "says": says}
    return {"passes": True, "settings": f"all {count}", "says": ""}


def our_verdict(case: Case) -> dict[str, Any]:
    """Whether the laws hold; else the first that is broken, where, and which others are."""
    judges = laws.ALL if case.form != WHOLE else (laws.declared_is_measured,)
    try:
        laws.check(case.ours, judges)
    except LawBroken as error:
        first, *rest = str(error).splitlines()
        messages = [line.strip() for line in rest if line.strip().startswith("also ")]
        others = [
            line.removeprefix("also ").partition(" (")[0].partition(":")[0] for line in messages
        ]
        says = f"{first}; also {', '.join(others)}" if others else first
        return {"passes": False, "says": says}
    return {"passes": True, "says": ""}


def complaints(case: Case, theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    """What must not be: our laws wrong, or a control that does not show that theirs can judge."""
    if ours["passes"] != case.right:
        verdict = "pass a wrong layer" if ours["passes"] else "reject a right layer"
        yield f"our laws {verdict}: {case.name}, {case.form}"
    if case.expected is not None and theirs["passes"] != case.expected:
        verdict = "passes" if theirs["passes"] else "rejects"
        yield f"their checker {verdict} the control {case.name}, {case.form}: used wrongly?"


def main() -> None:
    packages = ("sequence-layers", "jax", "jaxlib", "flax", "chex", "numpy", "torch")
    versions = {package: version(package) for package in packages}
    table = Table(
        "layer",
        "form",
        f"sequence-layers {versions['sequence-layers']}",
        "our laws",
        title="right and wrong layers, all declared to look at no future frame",
        caption=FORMS,
        caption_justify="left",
        show_lines=True,
    )
    verdicts, wrong = [], []
    for case in CASES:
        theirs, ours = their_verdict(case.theirs), our_verdict(case)
        wrong += complaints(case, theirs, ours)
        verdicts.append({"layer": case.name, "form": case.form, "theirs": theirs, "ours": ours})
        table.add_row(
            case.name,
            case.form,
            f"passes in {theirs['settings']} settings"
            if theirs["passes"]
            else f"rejects: {theirs['says']}",
            "pass" if ours["passes"] else f"reject: {ours['says']}",
        )
    emit(table, {"versions": versions, "verdicts": verdicts})
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
