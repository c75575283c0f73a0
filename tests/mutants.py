"""Show that the laws can fail: one-line faults in the source, each of which a law must catch.

`python -m tests.mutants` applies each fault to a copy of the package, holds the layers it concerns
to the laws in a process of its own, and prints which law caught it. It exits with 1 where a fault
survives, where a fault does not apply, or where the package as it is breaks a law.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nearfuture

ROOT = Path(__file__).parents[1]
PACKAGE = Path(nearfuture.__file__).parent


@dataclass(frozen=True)
class Mutant:
    """One fault: the line `old` of `file` becomes `new`; `layers` of the registry must notice."""

    name: str
    file: str
    old: str
    new: str
    layers: tuple[str, ...]


@dataclass(frozen=True)
class Caught:
    law: str
    layer: str
    message: str


MUTANTS = (
    Mutant(
        "state not carried from frame to frame",
        "layers/recurrent.py",
        "            state = _hold(t < lengths, moved, state)",
        "            _hold(t < lengths, moved, state)",
        ("gru",),
    ),
    Mutant(
        "inactive rows move on",
        "layers/recurrent.py",
        "        return torch.where(active[:, None], moved, state)",
        "        return moved",
        ("gru",),
    ),
    Mutant(
        "c of the LSTM not held for inactive rows",
        "layers/recurrent.py",
        "    return tuple(_hold(active, m, s) for m, s in zip(moved, state, strict=True))",
        "    return _hold(active, moved[0], state[0]), moved[1]",
        ("lstm",),
    ),
    Mutant(
        "prefill: state from the last column, not from the row's last frame",
        "layers/recurrent.py",
        "        index = lengths[:, None, None].expand(-1, 1, y.shape[2])",
        "        index = torch.full_like(lengths, y.shape[1])[:, None, None]"
        ".expand(-1, 1, y.shape[2])",
        ("gru",),
    ),
    Mutant(
        "prefill: c of the LSTM after the padding",
        "layers/cell.py",
        "        return last if bool((lengths == y.shape[1]).all()) else None",
        "        return last",
        ("lstm",),
    ),
    Mutant(
        "mask dropped in forward",
        "layers/recurrent.py",
        "        return mask(self.sequence(x, start)[0], lengths), lengths",
        "        return self.sequence(x, start)[0], lengths",
        ("gru",),
    ),
    Mutant(
        "batch norm: padding counted as frames",
        "layers/normalization.py",
        "        count = lengths.sum()[None] * self.bands",
        "        count = torch.full_like(lengths[:1], x.shape[0] * x.shape[1] * self.bands)",
        ("batch norm",),
    ),
    Mutant(
        "batch norm: the mean subtracted from padding too",
        "layers/normalization.py",
        "        distance = mask((values - mean[:, None]).flatten(2), lengths)",
        "        distance = (values - mean[:, None]).flatten(2)",
        ("batch norm of 2 channels",),
    ),
    Mutant(
        "batch norm not folded into the weights of the kernel",
        "layers/recurrent.py",
        "            return [scale[:, None] * self.weight_ih, "
        "self.weight_hh, shift, torch.zeros_like(shift)]",
        "            return [self.weight_ih, self.weight_hh, shift, torch.zeros_like(shift)]",
        ("gru batch norm",),
    ),
    Mutant(
        "cumulative norm: padding of the chunk counted as frames",
        "layers/normalization.py",
        "        return mask(y, lengths), lengths, (history[:, -1], count + lengths)",
        "        return mask(y, lengths), lengths, (history[:, -1], count + x.shape[1])",
        ("cumulative norm",),
    ),
    Mutant(
        "a shared projection read backwards from the padding",
        "layers/bidirectional.py",
        "        back = self.back.run(reverse(projected, lengths), start)",
        "        back = self.back.run(projected.flip(1), start)",
        ("bidirectional shared batch norm",),
    ),
    Mutant(
        "NaN survives a mask of 0",
        "layers/ragged.py",
        "    return torch.where("
        "inside[..., None], x, torch.zeros((), dtype=x.dtype, device=x.device))",
        "    return x * inside[..., None]",
        ("gru", "lookahead 3"),
    ),
    Mutant(
        "padding of the chunk counted as frames",
        "layers/windowed.py",
        "        total = count + lengths",
        "        total = count + x.shape[1]",
        ("lookahead 3",),
    ),
    Mutant(
        "padding of the chunk kept in the buffer",
        "layers/ragged.py",
        "    return _take(frames, slot + lengths[:, None])",
        "    return _take(frames, slot + frames.shape[1] - keep)",
        ("lookahead 3",),
    ),
    Mutant(
        "windows that do not begin with a row's own first frame",
        "layers/windowed.py",
        "        windows = frames if x.shape[1] == 1 else align(frames, keep - count)",
        "        windows = frames",
        ("convolution stride 3",),
    ),
    Mutant(
        "padding of the chunk counted as frames behind a shortcut",
        "layers/ragged.py",
        "    total = count + lengths",
        "    total = count + x.shape[1]",
        ("residual lookahead",),
    ),
    Mutant(
        "backward direction starts on padding",
        "layers/ragged.py",
        "    source = torch.where(slot < lengths[:, None], lengths[:, None] - 1 - slot, slot)",
        "    source = (x.shape[1] - 1 - slot).expand(x.shape[0], -1)",
        ("bidirectional gru",),
    ),
    Mutant(
        "a frame of the tail lost in finish",
        "layers/windowed.py",
        "        y, emitted, _ = self.step(zeros, torch.full_like(count, future), state)",
        "        y, emitted, _ = self.step("
        "zeros, torch.full_like(count, max(0, future - 1)), state)",
        ("lookahead 3",),
    ),
    Mutant(
        "padding on the wrong side",
        "layers/windowed.py",
        "            frames = F.pad(frames, (0, 0, self.left, self.right))",
        "            frames = F.pad(frames, (0, 0, self.right, self.left))",
        ("convolution causal",),
    ),
    Mutant(
        "warm-up forgotten when streaming",
        "layers/windowed.py",
        "        begun = self.left if self.padded else 0",
        "        begun = 0",
        ("convolution causal",),
    ),
    Mutant(
        "wrong length after a stride",
        "layers/windowed.py",
        "        return (count - (self.kernel - self.stride)).clamp(min=0) // self.stride",
        "        return (count - self.kernel).clamp(min=0) // self.stride + 1",
        ("convolution complete stride 2",),
    ),
    Mutant(
        "lookahead off by one",
        "layers/lookahead.py",
        "        self.weights = nn.ParameterList([torch.empty(dim, tau + 1) for tau in budgets])",
        "        self.weights = nn.ParameterList([torch.empty(dim, tau) for tau in budgets])",
        ("lookahead 3",),
    ),
    Mutant(
        "attention: a mask that ends one frame too late",
        "layers/attention/mask.py",
        "            allowed = allowed & (offset < field.block + int(field.right))",
        "            allowed = allowed & (offset <= field.block + int(field.right))",
        ("attention sliding",),
    ),
    Mutant(
        "attention: one key less than the window",
        "layers/attention/self_attention.py",
        "        return int(self.field.left) + self._waiting",
        "        return int(self.field.left) + self._waiting - 1",
        ("attention chunked ahead",),
    ),
    Mutant(
        "attention: queries that wait are turned as if they were new",
        "layers/attention/self_attention.py",
        "            row = at - wait[:, None] + self._waiting",
        "            row = at + self._waiting + 0 * wait[:, None]",
        ("attention chunked ahead",),
    ),
    Mutant(
        "attention: keys before the first frame are seen",
        "layers/attention/self_attention.py",
        "        exists = slot >= -seen[:, None]",
        "        exists = slot >= -seen[:, None] - 1",
        ("attention sliding ahead",),
    ),
    Mutant(
        "attention: keys of padding are seen",
        "layers/attention/self_attention.py",
        "        exists = frame < lengths[:, None] - begin",
        "        exists = frame <= lengths[:, None] - begin",
        ("attention full",),
    ),
    Mutant(
        "attention: a value of NaN weighed with 0",
        "layers/attention/self_attention.py",
        "        y = weights @ torch.where(v.isfinite(), v, 0.0)",
        "        y = weights @ v",
        ("attention sliding",),
    ),
    Mutant(
        "attention: what waits for its right context is lost at the end",
        "layers/attention/self_attention.py",
        "        return mask(y, wait), wait",
        "        return self.no_output(waiting)",
        ("attention sliding ahead",),
    ),
    Mutant(
        "shortcut too short for a block that waits",
        "layers/container.py",
        "        return int(self.field.right) + self.field.block - 1",
        "        return int(self.field.right)",
        ("attention of dynamic chunks",),
    ),
    Mutant(
        "shortcut not aligned with the layers around which it leads",
        "layers/container.py",
        "        y = _beside(y, frames, n)",
        "        y = _beside(y, x, n)",
        ("residual lookahead",),
    ),
    Mutant(
        "shortcut missing from the tail",
        "layers/container.py",
        "        return _beside(y, waiting, n), n",
        "        return y, n",
        ("residual lookahead",),
    ),
    Mutant(
        "the tail of one layer does not reach the state of the next",
        "layers/container.py",
        "            y, n, below = layer.step(y, n, below)",
        "            y, n, _ = layer.step(y, n, below)",
        ("recogniser",),
    ),
    Mutant(
        "a snapshot that is the original",
        "layers/state.py",
        "    return _map(lambda leaf: leaf.detach().clone(), state)",
        "    return _map(lambda leaf: leaf.detach(), state)",
        ("gru",),
    ),
    Mutant(
        "putting rows changes the state they are put into",
        "layers/state.py",
        "    return _map(lambda leaf, value: leaf.index_copy(0, rows, value), state, values)",
        "    return _map(lambda leaf, value: leaf.index_copy_(0, rows, value), state, values)",
        ("gru",),
    ),
    Mutant(
        "a reset that resets nothing",
        "layers/state.py",
        "    return _map(lambda leaf, value: leaf.index_copy(0, rows, value), state, values)",
        "    return _map(lambda leaf, value: leaf.clone(), state, values)",
        ("gru",),
    ),
    Mutant(
        "no gradient from frame to frame when streaming",
        "layers/recurrent.py",
        "            state = _hold(t < lengths, moved, state)",
        "            state = _hold(t < lengths, moved.detach(), state)",
        ("gru",),
    ),
    Mutant(
        "counts in integers that are not int64",
        "layers/windowed.py",
        "        return frames, torch.full("
        "(batch_size,), begun, dtype=torch.int64, device=frames.device)",
        "        return frames, torch.full("
        "(batch_size,), begun, dtype=torch.int32, device=frames.device)",
        ("lookahead 3",),
    ),
    Mutant(
        "a stream that starts in float32 whatever is asked for",
        "layers/contract.py",
        "        return torch.zeros(*shape, device=device, dtype=dtype or self.dtype)",
        "        return torch.zeros(*shape, device=device, dtype=torch.float32)",
        ("linear",),
    ),
    Mutant(
        "emission promised a frame early",
        "budget/field.py",
        "        return max(0, (n - 1 - right) // self.stride + 1)",
        "        return max(0, (n - right) // self.stride + 1)",
        ("lookahead 3",),
    ),
    Mutant(
        "right context forgotten in the declaration of a composition",
        "budget/field.py",
        "        t = last * link.stride + int(link.right)",
        "        t = last * link.stride",
        ("recogniser",),
    ),
)


def apply(mutant: Mutant | None, folder: Path) -> None:
    """Copy the package into `folder`, with the fault in it."""
    copy = folder / "nearfuture"
    shutil.copytree(PACKAGE, copy, ignore=_all_but_source)
    if mutant is None:
        return
    path = copy / mutant.file
    source = path.read_text(encoding="utf-8")
    lines = source.split("\n")
    if lines.count(mutant.old) != 1:
        raise SystemExit(
            f"mutant {mutant.name!r}: its line occurs {lines.count(mutant.old)} times in "
            f"{mutant.file}, not once; bring tests/mutants.py up to date:\n{mutant.old}"
        )
    lines[lines.index(mutant.old)] = mutant.new
    path.write_text("\n".join(lines), encoding="utf-8")


def _all_but_source(folder: str, names: list[str]) -> list[str]:
    source = {n for n in names if n.endswith(".py") or (Path(folder) / n).is_dir()}
    return [n for n in names if n == "__pycache__" or n not in source]


def judge(mutant: Mutant | None, layers: Sequence[str]) -> list[Caught]:
    """The laws that reject these layers of the package with the fault in it."""
    with tempfile.TemporaryDirectory() as folder:
        apply(mutant, Path(folder))
        path = os.pathsep.join([folder, str(ROOT)])
        run = subprocess.run(
            [sys.executable, "-m", "tests.mutants", "--judge", folder, *layers],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            raise SystemExit(f"{mutant.name if mutant else 'unchanged'} did not run:\n{run.stderr}")
        return [Caught(**found) for found in json.loads(run.stdout.splitlines()[-1])]


def hold_to_the_laws(folder: str, layers: Sequence[str]) -> None:
    """In a process of its own: print, as JSON, every law that the copy in `folder` breaks."""
    import torch

    from nearfuture import laws
    from tests.laws.registry import ALL

    assert Path(nearfuture.__file__).is_relative_to(folder), nearfuture.__file__
    torch.set_num_threads(1)
    found = []
    for law in laws.ALL:
        for name in layers:
            try:
                law(ALL[name])
            except Exception as error:  # a crash rejects a fault as well as a broken law
                found.append({"law": law.__name__, "layer": name, "message": _told(error)})
                break
    print(json.dumps(found))


def _told(error: Exception) -> str:
    """Where a law says that it is broken; what a crash says, with its kind."""
    if hasattr(error, "where"):
        return str(error.where)
    return f"{type(error).__name__}: {error}".splitlines()[0]


def main(mutants: Sequence[Mutant] = MUTANTS) -> int:
    """Print mutant → law → message; 0 where every fault is caught and none is found unchanged."""
    from rich.console import Console
    from rich.table import Table

    layers = sorted({name for mutant in mutants for name in mutant.layers})
    with ThreadPoolExecutor(max_workers=2) as pool:
        unchanged = pool.submit(judge, None, layers)
        verdicts = list(pool.map(lambda mutant: judge(mutant, mutant.layers), mutants))
    table = Table("mutant", "caught by", "the first law says", show_lines=True)
    for mutant, caught in zip(mutants, verdicts, strict=True):
        by = "\n".join(found.law for found in caught) or "[bold red]SURVIVED"
        said = f"{caught[0].layer}: {caught[0].message}" if caught else ""
        table.add_row(mutant.name, by, said)
    (console := Console(width=None if sys.stdout.isatty() else 140)).print(table)
    survived = [mutant.name for mutant, caught in zip(mutants, verdicts, strict=True) if not caught]
    broken = unchanged.result()
    for found in broken:
        console.print(f"unchanged, {found.layer} breaks {found.law}: {found.message}", markup=False)
    console.print(f"{len(mutants) - len(survived)} of {len(mutants)} mutants caught")
    return 1 if survived or broken else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--judge"]:
        hold_to_the_laws(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
