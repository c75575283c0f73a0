"""`nearfuture audit` as a person runs it: every option, every exit code, each mistake."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import torch

import nearfuture.audit
from nearfuture.audit import render
from nearfuture.audit.report import Report
from nearfuture.cli import main
from nearfuture.error import NearfutureError
from nearfuture.runtime.bundle import MODELS
from tests.audit.reports import PLAIN, REPORTS

Capture = pytest.CaptureFixture[str]

MODELS_PY = """
import functools

import numpy as np
import torch

print("models.py says hello")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(3, 3, 3, padding=1)

    def forward(self, x):
        print("forward says hello")
        return self.conv(x.transpose(1, 2)).transpose(1, 2)


class Sized(torch.nn.Module):
    def __init__(self, dim, *, layers):
        super().__init__()


class Held:
    net = Net()

    @property
    def broken(self):
        raise RuntimeError("no such thing")


held = Held()
net = Net()


def build():
    return Net()


def build_with_default(dim=3):
    return Net()


def nothing():
    return None


def fails():
    raise KeyError("no weights\\nin this folder")


def fails_inside_torch():
    return torch.zeros(2) @ torch.zeros(3)


def leaves():
    raise SystemExit("usage: train first")


def causal(x):
    return np.cumsum(x, axis=1)


def any_number(*x):
    return x[0]


def tensors(x):
    return torch.cumsum(x, dim=1)


def mean(x):
    return x - x.mean(axis=1, keepdims=True)


def cannot(x):
    raise RuntimeError("only on Tuesdays")


def step(x, state):
    return x + state, state


def refuses(x, state):
    raise ValueError("no such chunk")


def start():
    return 0


def finish(state):
    return []


partial = functools.partial(causal)
number = 7
"""

SHAPE = ("--shape", "1,8,3")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the user's code, which is where the command runs."""
    (tmp_path / "models.py").write_text(MODELS_PY, encoding="utf-8")
    (tmp_path / "folder.html").mkdir()
    package = tmp_path / "userpackage"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "nets.py").write_text("from models import Net, causal, net", encoding="utf-8")
    (package / "broken.py").write_text("x = 1\nraise ValueError('bad config')", encoding="utf-8")
    (package / "typo.py").write_text("x = 1\ndef f(:\n", encoding="utf-8")
    (package / "needs.py").write_text("import nosuchlibrary", encoding="utf-8")
    (package / "torchless.py").write_text(
        "raise ModuleNotFoundError('No module named torch', name='torch')", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr(sys, "path", sys.path[:])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("models", "userpackage", "_audited_models"):
            del sys.modules[name]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the library was asked; it answers that everything holds."""
    seen: dict[str, Any] = {}

    def model(fn: Any, example: Any = None, **options: Any) -> Report:
        seen.update(options, fn=fn, example=example)
        return PLAIN

    monkeypatch.setattr(nearfuture.audit, "model", model)
    return seen


def run(capsys: Capture, *arguments: str | Path) -> tuple[int, str, str]:
    code = 0
    try:
        main(["audit", *map(str, arguments)])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def mistake(capsys: Capture, *arguments: str | Path) -> str:
    """The one line that names a mistake."""
    code, out, err = run(capsys, *arguments)
    lines = [line for line in err.splitlines() if "says hello" not in line]
    assert (code, out, len(lines)) == (2, "", 1), (code, out, err)
    return lines[0].removeprefix("nearfuture: ")


# What is audited.


def test_what_holds_is_exit_code_0(capsys: Capture) -> None:
    code, out, _ = run(capsys, "models.py:causal", *SHAPE, "--at-most", "0")
    assert code == 0
    assert out.startswith("holds: it depends on nothing after its own frame")
    assert "models.py:causal" in out


def test_what_is_broken_is_exit_code_1_and_names_the_culprit(capsys: Capture) -> None:
    code, out, _ = run(capsys, "models.py:Net", *SHAPE, "--at-most", "0")
    assert code == 1
    assert out.startswith("broken: it depends on the future")
    assert "conv (conv1d at models.py" in " ".join(out.split())


def test_what_cannot_be_decided_is_exit_code_3(capsys: Capture) -> None:
    steps = ("--step", "models.py:refuses", "--start", "models.py:start")
    code, out, _ = run(capsys, "models.py:causal", *SHAPE, *steps)
    assert code == 3
    assert out.startswith("undecided: whether it streams differently from one call")


def test_without_a_limit_it_only_tells(capsys: Capture) -> None:
    code, out, _ = run(capsys, "models.py:Net", *SHAPE)
    assert code == 0
    assert "1 frame" in out


@pytest.mark.parametrize(
    "name",
    [
        "models.py:Net",
        "models.py:net",
        "models.py:build",
        "models.py:build_with_default",
        "models.py:held.net",
        "models.py:Held.net",
        "models:net",
        "userpackage.nets:Net",
        "userpackage.nets:net",
    ],
)
def test_modules_and_what_builds_them(name: str, asked: dict[str, Any], capsys: Capture) -> None:
    assert run(capsys, name, *SHAPE)[0] == 0
    assert type(asked["fn"]).__name__ == "Net"
    assert isinstance(asked["example"], torch.Tensor)
    assert asked["name"] == name


@pytest.mark.parametrize("name", ["causal", "any_number", "partial"])
def test_functions_are_audited_themselves(
    name: str, asked: dict[str, Any], capsys: Capture
) -> None:
    assert run(capsys, f"models.py:{name}", *SHAPE)[0] == 0
    assert isinstance(asked["fn"], FunctionType) or name == "partial"
    assert isinstance(asked["example"], np.ndarray)


def test_a_file_by_its_whole_path_and_beside_it_what_it_imports(
    folder: Path, asked: dict[str, Any], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "userpackage" / "beside.py").write_text("def f(x): return x", encoding="utf-8")
    (folder / "userpackage" / "random.py").write_text("from beside import f", encoding="utf-8")
    monkeypatch.chdir(folder.parent)
    assert run(capsys, folder / "userpackage" / "random.py:f", *SHAPE)[0] == 0
    assert asked["fn"].__name__ == "f"
    assert sys.modules.get("random") is __import__("random")


@pytest.mark.parametrize("name", ["digits", str(MODELS / "digits"), "x.zip", "folder/model.onnx"])
def test_graphs_and_bundles_are_handed_over_by_name(
    name: str, asked: dict[str, Any], capsys: Capture
) -> None:
    shape = SHAPE if name.endswith(".onnx") else ()
    assert run(capsys, name, *shape)[0] == 0
    assert asked["fn"] == name
    assert (asked["example"] is None) == (not shape)
    assert asked["name"] is None


def test_a_graph_for_real(folder: Path, capsys: Capture) -> None:
    import onnx.helper as make
    from onnx import TensorProto, save

    x, y = (make.make_tensor_value_info(n, TensorProto.FLOAT, ["N", "T", 3]) for n in "xy")
    kernel = make.make_tensor("axis", TensorProto.INT64, [], [1])
    node = make.make_node("CumSum", ["x", "axis"], ["y"])
    graph = make.make_graph([node], "g", [x], [y], [kernel])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    save(model, folder / "sum.onnx")
    code, out, _ = run(capsys, "sum.onnx", *SHAPE, "--at-most", "0")
    assert (code, out.partition(":")[0]) == (0, "holds")
    assert "no file" in mistake(capsys, "nowhere.onnx", *SHAPE)


def test_a_bundle_for_real(capsys: Capture) -> None:
    code, out, err = run(capsys, "digits", "--output", "0", "--at-most", "60ms", "--lookahead-only")
    assert (code, err) == (0, "")
    assert "55 ms in the worst case" in out
    code, out, _ = run(capsys, "digits", "--at-most", "50ms", "--lookahead-only")
    assert code == 1


# Options.


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        ((), "frame_ms", None),
        ((), "matrix", None),
        ((), "step", None),
        ((), "takes", None),
        ((), "frame_samples", 1),
        ((), "train", False),
        (("--lengths", "8,5"), "lengths", (8, 5)),
        (("--at-most", "19"), "at_most", 19),
        (("--at-most", "0"), "at_most", 0),
        (("--at-most", "760ms", "--frame-ms", "40"), "at_most_ms", 760.0),
        (("--at-most", "37.5 MS", "--frame-ms", "40"), "at_most_ms", 37.5),
        (("--frame-ms", "12.5"), "frame_ms", 12.5),
        (("--layout", "TNC"), "layout", "TNC"),
        (("--output", "1"), "output", 1),
        (("--output", "logits"), "output", "logits"),
        (("--output-layout", "NC"), "output_layout", "NC"),
        (("--takes", "nothing"), "takes", "nothing"),
        (("--takes", "lengths"), "takes", "lengths"),
        (("--takes", "mask"), "takes", "mask"),
        (("--takes", "padding-mask"), "takes", "padding_mask"),
        (("--takes", "padding_mask"), "takes", "padding_mask"),
        (("--takes", "mask", "--keyword", "attention_mask"), "keyword", "attention_mask"),
        (("--lengths", "8", "--keyword", "n"), "keyword", "n"),
        (("--frame-samples", "160"), "frame_samples", 160),
        (("--stride", "4"), "stride", 4),
        (("--observed", "12"), "observed", 12),
        (("--train",), "train", True),
        (("--padding", "left"), "padding", "left"),
        (("--chunks", "8,16"), "chunks", (8, 16)),
        (("--first-chunk", "5"), "first_chunk", 5),
        (("--lookahead-only",), "matrix", False),
        (("--seed", "5"), "seed", 5),
    ],
)
def test_every_option_arrives(
    arguments: tuple[str, ...], name: str, value: Any, asked: dict[str, Any], capsys: Capture
) -> None:
    assert run(capsys, "models.py:net", *SHAPE, *arguments)[0] == 0
    assert asked[name] == value
    assert type(asked[name]) is type(value)


def test_step_start_and_finish_are_named_like_the_target(
    asked: dict[str, Any], capsys: Capture
) -> None:
    parts = ("--step", "models:step", "--start", "models:start", "--finish", "models:finish")
    assert run(capsys, "models:net", *SHAPE, *parts)[0] == 0
    assert [asked[part].__name__ for part in ("step", "start", "finish")] == [
        "step",
        "start",
        "finish",
    ]


def test_a_latency_needs_no_frame_ms_where_a_bundle_knows_it(
    asked: dict[str, Any], capsys: Capture
) -> None:
    assert run(capsys, "digits", "--at-most", "400ms")[0] == 0
    assert asked["at_most_ms"] == 400


def test_examples_are_drawn_from_the_seed(asked: dict[str, Any], capsys: Capture) -> None:
    def example(*arguments: str) -> Any:
        assert run(capsys, "models.py:causal", *arguments)[0] == 0
        return asked["example"]

    x = example("--shape", "2,50,40")
    assert (x.shape, x.dtype) == ((2, 50, 40), np.float32)
    assert abs(x.mean()) < 0.1
    assert abs(x.std() - 1) < 0.1
    assert (x == example("--shape", "2,50,40", "--seed", "0")).all()
    assert (x != example("--shape", "2,50,40", "--seed", "1")).any()
    assert example("--shape", "2,5", "--dtype", "float64").dtype == np.float64
    tokens = example("--shape", "2,500", "--tokens", "10")
    assert tokens.dtype == np.int64
    assert set(tokens.flat) == set(range(10))


def test_a_function_gets_tensors_where_they_are_asked_for(
    asked: dict[str, Any], capsys: Capture
) -> None:
    run(capsys, "models.py:tensors", *SHAPE, "--torch")
    assert asked["example"].dtype == torch.float32
    run(capsys, "models.py:tensors", "--shape", "1,8", "--tokens", "5", "--torch")
    assert asked["example"].dtype == torch.int64


def test_a_function_of_tensors_for_real(capsys: Capture) -> None:
    assert run(capsys, "models.py:tensors", *SHAPE, "--torch", "--at-most", "0")[0] == 0
    assert "(does it take torch tensors? --torch)" in mistake(capsys, "models.py:tensors", *SHAPE)


def test_examples_from_files(folder: Path, asked: dict[str, Any], capsys: Capture) -> None:
    values = np.arange(24, dtype=np.float64).reshape(1, 8, 3)
    np.save(folder / "x.npy", values)
    np.savez(folder / "x.npz", anything=values)
    torch.save(torch.tensor(values, dtype=torch.bfloat16), folder / "x.pt")
    torch.save(torch.tensor(values), folder / "x.pth")
    for name, dtype in (("x.npy", np.float64), ("x.npz", np.float64), ("x.pth", torch.float64)):
        assert run(capsys, "models.py:causal", "--example", name)[0] == 0
        assert asked["example"].dtype == dtype
        assert asked["example"].tolist() == values.tolist()
    run(capsys, "models.py:causal", "--example", "x.pt")
    assert asked["example"].dtype == torch.bfloat16
    run(capsys, "models.py:net", "--example", "x.npy")
    assert asked["example"].dtype == torch.float64


def test_an_example_in_another_type(folder: Path, asked: dict[str, Any], capsys: Capture) -> None:
    values = np.arange(24).reshape(1, 8, 3)
    np.save(folder / "x.npy", values)
    torch.save(torch.tensor(values, dtype=torch.bfloat16), folder / "x.pt")
    for name, target, dtype in (
        ("x.npy", "causal", np.float32),
        ("x.npy", "net", torch.float32),
        ("x.pt", "net", torch.float32),
    ):
        parts = (f"models.py:{target}", "--example", name, "--dtype", "float32")
        assert run(capsys, *parts)[0] == 0
        assert asked["example"].dtype == dtype
        assert asked["example"].tolist() == values.tolist()
    run(capsys, "models.py:net", "--example", "x.pt", "--dtype", "float64")
    assert asked["example"].dtype == torch.float64


def test_what_a_model_draws_when_it_is_built_follows_from_the_seed(
    folder: Path, capsys: Capture
) -> None:
    (folder / "fresh.py").write_text(
        "import numpy, random, torch\n"
        "net = torch.nn.Linear(3, 3)\n"
        "def build(): return torch.nn.Linear(3, 3)\n"
        "def fails(): raise ValueError([*net.weight[0].tolist(), *build().weight[0].tolist(), "
        "random.random(), numpy.random.rand()])\n",
        encoding="utf-8",
    )

    arguments = ["audit", "fresh.py:fails", *SHAPE, "--seed"]
    shell = subprocess.run(  # where torch is imported by the user's file
        [sys.executable, "-c", "from nearfuture.cli import main\nmain()", *arguments, "0"],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    here = [mistake(capsys, *arguments[1:], seed) for seed in ("0", "1")]  # and where it was before
    assert "ValueError: [" in here[0]
    assert shell.stderr == f"nearfuture: {here[0]}\n" != f"nearfuture: {here[1]}\n"


def test_torch_is_seeded_but_not_loaded(folder: Path) -> None:
    (folder / "plain.py").write_text(
        "def f(x): return x\ndef fails(): import sys; raise ValueError('torch' in sys.modules)",
        encoding="utf-8",
    )
    code = "from nearfuture.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code, "audit", "plain.py:fails", *SHAPE],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert "ValueError: False" in done.stderr


# What comes out.


def test_json_is_all_that_is_on_stdout(capsys: Capture) -> None:
    code, out, err = run(capsys, "models.py:Net", *SHAPE, "--at-most", "0", "--json")
    answer = json.loads(out)
    assert (code, answer["holds"], answer["lookahead"]) == (1, False, 1)
    assert answer["model"] == "models.py:Net"
    assert "models.py says hello" in err
    assert "forward says hello" in err


def test_a_page_is_written(folder: Path, capsys: Capture) -> None:
    code, out, _ = run(capsys, "models.py:mean", *SHAPE, "--at-most", "0", "--out", "page.html")
    assert code == 1
    assert out.endswith("Written to page.html\n")
    assert "<!DOCTYPE html>" in (folder / "page.html").read_text(encoding="utf-8")
    _, out, _ = run(capsys, "--out", folder / "b.html", "models.py:mean", *SHAPE, "--json")
    json.loads(out)
    assert (folder / "b.html").is_file()


@pytest.mark.parametrize("name", REPORTS)
def test_a_terminal_shows_the_words_of_the_report(
    name: str, asked: dict[str, Any], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearfuture.audit, "model", lambda *_, **__: REPORTS[name])
    monkeypatch.setenv("COLUMNS", "60")  # a report is never folded twice
    code, out, _ = run(capsys, "models.py:net", *SHAPE)
    assert out == f"{render.text(REPORTS[name])}\n"
    assert code == (0 if REPORTS[name].holds else 1)


def test_a_terminal_shows_colours(
    asked: dict[str, Any], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.setattr(nearfuture.audit, "model", lambda *_, **__: REPORTS["chunked"])
    _, out, err = run(capsys, "models.py:net", *SHAPE)
    assert "\x1b[1;31mbroken: it depends on the future" in out
    assert "\x1b[34m░" in out
    assert "auditing models.py:net" in err


def test_markup_in_names_is_only_text(
    asked: dict[str, Any], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = replace(PLAIN, model="[bold]x[/bold]", notes=("[red]:warning:",))
    monkeypatch.setattr(nearfuture.audit, "model", lambda *_, **__: odd)
    _, out, _ = run(capsys, "models.py:net", *SHAPE)
    assert "[bold]x[/bold]" in out
    assert "[red]:warning:" in out


def test_from_a_shell(folder: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", "from nearfuture.cli import main; main()"]
    arguments = ["audit", "models:mean", *SHAPE, "--at-most", "0"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("broken: ")
    assert done.stderr == "models.py says hello\n"


# Mistakes.


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("models", "'models' is no .onnx file and no bundle (digits, digits-bidirectional, a fold"),
        ("models.py", "Python code is named with a colon: package.module:name or file.py:name"),
        (":net", "Python code is named as package.module:name or file.py:name, not ':net'"),
        ("models:", "not 'models:'"),
        ("nowhere.py:net", "there is no file nowhere.py"),
        ("nowhere:net", "there is no module 'nowhere', neither in the current folder nor among"),
        ("userpackage.nowhere:net", "there is no module 'userpackage.nowhere'"),
        ("userpackage.nets.deeper:net", "there is no module 'userpackage.nets.deeper'"),
        ("models.py:nett", "models.py has no 'nett'; did you mean net?"),
        ("models:held.nett", "models has no 'held.nett'; did you mean net?"),
        ("models:zzz", "models has no 'zzz'"),
        (
            "models.py:held.broken",
            "reading models.py:held.broken failed: RuntimeError: no such thi",
        ),
        ("models.py:Sized", "models.py:Sized needs dim, layers to be built: name a function with"),
        ("models.py:nothing", "models.py:nothing is None, which cannot be called: name a torch mo"),
        ("models.py:number", "models.py:number is of type int, which cannot be called"),
        ("models.py:Held", "models.py:Held is of type Held, which cannot be called"),
        (
            "models.py:fails",
            "calling models.py:fails() failed: KeyError: 'no weights\\nin this fol",
        ),
        ("models.py:leaves", "calling models.py:leaves() failed: SystemExit: usage: train first ("),
        ("userpackage.broken:x", "importing userpackage.broken failed: ValueError: bad config ("),
        ("userpackage/broken.py:x", "importing userpackage/broken.py failed: ValueError: bad con"),
        ("userpackage.typo:f", "importing userpackage.typo failed: SyntaxError: "),
        ("userpackage.needs:f", "ModuleNotFoundError: No module named 'nosuchlibrary' ("),
        ("userpackage.torchless:f", "install it with: pip install 'nearfuture[train]' (without a "),
        ("nowhere.zip", "there is no model 'nowhere.zip'"),
        (".", "holds no model: it has no model.json"),
    ],
)
def test_what_cannot_be_found_or_built(name: str, message: str, capsys: Capture) -> None:
    assert message in mistake(capsys, name, *SHAPE)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("userpackage.broken:x", "userpackage/broken.py:2)"),
        ("userpackage.typo:f", "line 2)"),
        ("models.py:fails", "models.py:"),
        ("models.py:fails_inside_torch", "models.py:"),
    ],
)
def test_the_line_of_the_user_is_named(name: str, place: str, capsys: Capture) -> None:
    assert place in mistake(capsys, name, *SHAPE)


def test_what_the_model_raises_is_one_line(capsys: Capture) -> None:
    assert "RuntimeError: only on Tuesdays" in mistake(capsys, "models.py:cannot", *SHAPE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "describe an input: --shape 1,200,80 or --example FILE"),
        ((*SHAPE, "--example", "x.npy"), "choose one of --shape and --example"),
        (("--shape", "1,x,3"), "--shape takes whole numbers above 0 between commas, such as 1,2"),
        (("--shape", "1,0,3"), "not '1,0,3'"),
        (("--shape", ""), "not ''"),
        ((*SHAPE, "--lengths", "8;5"), "--lengths takes whole numbers"),
        ((*SHAPE, "--at-most", "soon"), "such as 19, or a latency, such as 760ms, not 'soon'"),
        ((*SHAPE, "--at-most=-1"), "not '-1'"),
        ((*SHAPE, "--at-most", "nanms"), "not 'nanms'"),
        ((*SHAPE, "--at-most", "1.5"), "--at-most 1.5 is no whole number of frames; a latency e"),
        ((*SHAPE, "--at-most", "inf"), "no whole number of frames"),
        ((*SHAPE, "--at-most", "760ms"), "needs --frame-ms: the duration of one input frame"),
        (("--example", "x.npy", "--tokens", "5"), "--tokens has no effect without --shape"),
        (("--dtype", "float64"), "--dtype has no effect without --shape or --example"),
        ((*SHAPE, "--tokens", "5", "--dtype", "float64"), "choose one of --dtype and --tokens"),
        ((*SHAPE, "--tokens", "0"), "--tokens is a number of tokens from 1, not 0"),
        ((*SHAPE, "--start", "models:start"), "--start and --finish have no effect without --step"),
        ((*SHAPE, "--finish", "models:start"), "no effect without --step"),
        ((*SHAPE, "--step", "models:stepp"), "models has no 'stepp'; did you mean step"),
        ((*SHAPE, "--chunks", "8"), "--chunks and --first-chunk have no effect without --step"),
        ((*SHAPE, "--step", "models:step", "--chunks", "0"), "--chunks takes whole numbers above"),
        ((*SHAPE, "--padding", "left"), "--padding has no effect without --lengths or --takes"),
        ((*SHAPE, "--keyword", "mask"), "--keyword has no effect without --takes or --lengths"),
        ((*SHAPE, "--takes", "nothing", "--keyword", "m"), "--keyword has no effect"),
        ((*SHAPE, "--train"), "--train is for torch modules, and models.py:causal is none"),
        ((*SHAPE, "--out", "no/such/page.html"), "there is no folder no/such to write page.html"),
        ((*SHAPE, "--out", "page.pdf"), "ends in .html, .json, .xml, .sarif, not page.pdf"),
        ((*SHAPE, "--out", "folder.html"), "folder.html cannot be written: Is a directory"),
        ((*SHAPE, "--frame-ms", "0"), "--frame-ms is above 0 and finite, not 0"),
        ((*SHAPE, "--frame-ms", "9", "--at-most", "0ms"), "--at-most is above 0 and finite, not 0"),
        ((*SHAPE, "--observed=-1"), "--observed counts frames from 0"),
        ((*SHAPE, "--seed=-1"), "--seed is an integer from 0 and below 2**32, not -1"),
        ((*SHAPE, "--seed", str(2**32)), "--seed is an integer from 0"),
        (("--shape", "1,8,3,2"), "needs --layout: a letter for every axis, N for rows, T for time"),
    ],
)
def test_mistakes_are_named(arguments: tuple[str, ...], message: str, capsys: Capture) -> None:
    assert message in mistake(capsys, "models.py:causal", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("models.py:net", *SHAPE, "--torch"),
            "--torch is for functions, and models.py:net is non",
        ),
        (("digits", "--torch"), "--torch is for functions"),
        (("digits", "--train"), "--train is for torch modules"),
        (("digits", "--frame-ms", "40"), "--frame-ms is known from the bundle: leave it"),
        (("digits", "--stride", "4"), "--stride is known from the bundle"),
        (
            ("digits", "--at-most", "400"),
            "limit its latency in ms instead of --at-most 400",
        ),
    ],
)
def test_options_without_effect_are_refused(
    arguments: tuple[str, ...], message: str, capsys: Capture
) -> None:
    assert message in mistake(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("models.py:net", "--shape", "2,8,3", "--lengths", "8,5"),
            "choose --takes (nothing, mask or padding_mask), and name that argument with --keyword "
            "(models.py:net cannot be run on",
        ),
        (
            ("models.py:net", "--example", "x64.npy"),
            "(the example holds float64: --dtype float32?)",
        ),
        (
            ("models.py:net", *SHAPE, "--dtype", "float64"),
            "(the example holds float64: --dtype float32?)",
        ),
        (("models.py:words", "--shape", "1,8"), "(does it take tokens? --tokens)"),
    ],
)
def test_a_way_out_is_told_in_flags(
    folder: Path, arguments: tuple[str, ...], message: str, capsys: Capture
) -> None:
    np.save(folder / "x64.npy", np.ones((1, 8, 3)))
    with (folder / "models.py").open("a", encoding="utf-8") as file:
        file.write("words = torch.nn.Embedding(5, 3)\n")
    assert message in mistake(capsys, *arguments)


def test_what_the_model_says_is_not_reworded(capsys: Capture, folder: Path) -> None:
    (folder / "wordy.py").write_text(
        "def f(x): raise TypeError(\"takes='nothing' with layout and frame_ms\")", encoding="utf-8"
    )
    said = mistake(capsys, "wordy.py:f", *SHAPE)
    assert said.endswith("TypeError: takes='nothing' with layout and frame_ms")


def written(folder: Path, name: str) -> str:
    """A file that is no example, by what is wrong with it."""
    path = folder / name
    if name == "objects.npy":
        np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    elif name == "pickle.npy":
        import pickle

        path.write_bytes(pickle.dumps([1, 2]))
    elif name == "two.npz":
        np.savez(path, a=np.ones(3), b=np.ones(3))
    elif name == "dict.pt":
        torch.save({"x": torch.ones(2)}, path)
    elif name == "module.pt":
        torch.save(torch.nn.Linear(1, 1), path)
    elif name == "empty.npy":
        path.touch()
    elif name in ("text.npz", "text.pt", "x.wav"):
        path.write_text("These are words.", encoding="utf-8")
    elif name == "cut.pt":
        torch.save(torch.ones(1000), path)
        path.write_bytes(path.read_bytes()[:700])
    elif name == "cut.npy":
        np.save(path, np.ones(1000))
        path.write_bytes(path.read_bytes()[:700])
    return str(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.npy", "there is no file"),
        ("x.wav", "an example is a .npy, .npz or .pt file, not x.wav"),
        ("objects.npy", "is not opened, since what it holds could run code: save the input alone"),
        ("pickle.npy", "is not opened, since what it holds could run code"),
        ("module.pt", "is not opened, since what it holds could run code: save the input alone, w"),
        ("dict.pt", "holds a dict, not a tensor: save the input alone"),
        ("two.npz", "holds 2 arrays (a, b): save the input alone"),
        ("empty.npy", "cannot be read as an array"),
        ("cut.npy", "cannot be read as an array"),
        ("text.npz", "is not opened"),
        ("cut.pt", "cannot be read as a tensor"),
        ("text.pt", "is not opened"),
    ],
)
def test_files_that_are_no_example(folder: Path, name: str, message: str, capsys: Capture) -> None:
    assert message in mistake(capsys, "models.py:causal", "--example", written(folder, name))


def test_an_unpickled_file_would_have_run(folder: Path, capsys: Capture) -> None:
    import pickle

    class Trap:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.mkdir, (str(folder / "sprung"),)

    for name in ("trap.npy", "trap.npz", "trap.pt"):
        (folder / name).write_bytes(pickle.dumps(Trap()))
        mistake(capsys, "models.py:causal", "--example", name)
    torch.save(Trap(), folder / "trap.pt")
    mistake(capsys, "models.py:causal", "--example", "trap.pt")
    assert not (folder / "sprung").exists()


def test_a_tensor_without_torch(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "plain.py").write_text("def f(x): return x", encoding="utf-8")
    torch.save(torch.ones(1, 8, 3), folder / "x.pt")
    monkeypatch.setitem(sys.modules, "torch", None)
    message = mistake(capsys, "plain.py:f", "--example", "x.pt")
    assert "to read x.pt needs torch, which the base install leaves out; install it with" in message
    message = mistake(capsys, "plain.py:f", *SHAPE, "--torch")
    assert "pip install 'nearfuture[train]'" in message


def test_our_own_mistakes_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def model(*_: Any, **__: Any) -> Report:
        raise AssertionError("an invariant")

    monkeypatch.setattr(nearfuture.audit, "model", model)
    with pytest.raises(AssertionError, match="an invariant"):
        main(["audit", "models.py:causal", *SHAPE])


def test_a_mistake_of_a_module_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def model(*_: Any, **__: Any) -> Report:
        raise NearfutureError("Tensor trouble")

    monkeypatch.setattr(nearfuture.audit, "model", model)
    with pytest.raises(SystemExit) as stopped:
        main(["audit", "models.py:net", *SHAPE])
    assert stopped.value.code == 2


def test_ctrl_c_prints_what_is_known(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def model(*_: Any, **__: Any) -> Report:
        raise nearfuture.audit.AuditInterrupted(PLAIN)

    monkeypatch.setattr(nearfuture.audit, "model", model)
    code, out, err = run(capsys, "models.py:causal", *SHAPE)
    assert code == 130
    assert out.startswith("holds: ")
    assert "Traceback" not in err


def test_on_github_a_finding_is_an_annotation_too(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    _, out, _ = run(capsys, "models.py:Net", *SHAPE, "--at-most", "0")
    assert re.search(
        r"^::error file=models.py,line=\d+,title=it depends on the future::", out, re.M
    )
    _, out, _ = run(capsys, "models.py:Net", *SHAPE, "--at-most", "0", "--json")
    json.loads(out)
