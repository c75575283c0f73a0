"""A job tells what it does, what it leaves out, and stops when it is told to."""

import queue
import threading
from pathlib import Path
from typing import Any

import pytest

from nearfuture.data import read_manifest
from nearfuture.runtime.bundle import MODELS
from nearfuture.speech import tiny
from nearfuture.training import TrainingOptions, load_model, session
from nearfuture.training.session import Failure, Job, Message, Note, Outcome

SAMPLES = MODELS.parent / "samples"


def manifest(folder: Path, *, dev: bool) -> Path:
    entries = read_manifest(SAMPLES / "manifest.tsv")
    rows = [[str(entry.path), entry.transcript, "train"] for entry in entries[:3]]
    rows += [[str(folder / "missing.wav"), "one", "train"], [str(entries[3].path), " ", "train"]]
    rows += [[str(entries[4].path), entries[4].transcript, "dev" if dev else "train"]]
    path = folder / "manifest.tsv"
    lines = ["path\ttranscript\tsplit", *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def ran(job: Job, monkeypatch: pytest.MonkeyPatch, stop: bool = False) -> tuple[list[Message], Any]:
    """The messages of a job, and what it asked to export."""
    exported: dict[str, Any] = {}

    def export(model: object, folder: Path, **about: object) -> Path:
        exported.update(about)
        return folder

    monkeypatch.setattr(session, "export_bundle", export)
    messages: queue.Queue[tuple[str, Message]] = queue.Queue()
    told = threading.Event()
    if stop:
        told.set()
    session.run(job, messages, told)  # type: ignore[arg-type]
    return [messages.get()[1] for _ in range(messages.qsize())], exported


def job(path: Path, folder: Path, steps: int = 1) -> Job:
    options = TrainingOptions(steps=steps, warmup=1)
    return Job(
        name="streaming",
        config=tiny(),
        options=options,
        manifest=path,
        folder=folder / "mine" / "streaming",
        threads=1,
    )


def test_what_is_left_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages, exported = ran(job(manifest(tmp_path, dev=True), tmp_path), monkeypatch)
    skipped = [line for note in messages if isinstance(note, Note) for line in note.skipped]
    assert len(skipped) == 2
    assert any("missing.wav" in line for line in skipped)
    assert any("transcript is empty" in line for line in skipped)
    outcome = messages[-1]
    assert isinstance(outcome, Outcome)
    assert outcome.done
    assert outcome.watched == "1 recordings of the split dev"
    assert exported["name"] == "mine-streaming"
    assert exported["training"]["task"] == "manifest.tsv"


def test_without_a_dev_split_the_table_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, _ = ran(job(manifest(tmp_path, dev=False), tmp_path), monkeypatch)
    outcome = messages[-1]
    assert isinstance(outcome, Outcome)
    assert "trained on" in outcome.watched


def test_a_job_can_be_stopped_while_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, _ = ran(job(manifest(tmp_path, dev=True), tmp_path), monkeypatch, stop=True)
    assert messages[-1] == Outcome(done=False)
    assert not (tmp_path / "mine").exists()


def test_a_manifest_that_changed_is_another_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = manifest(tmp_path, dev=True)
    ran(job(path, tmp_path), monkeypatch)
    path.write_text(path.read_text().replace("missing", "lost"))
    messages, _ = ran(job(path, tmp_path), monkeypatch)
    assert isinstance(messages[-1], Failure)
    assert "manifest_sha256" in messages[-1].reason


def test_the_seed_decides_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = manifest(tmp_path, dev=True)

    def weights(folder: str) -> Any:
        one = job(path, tmp_path / folder)
        ran(one, monkeypatch)
        return load_model(one.folder / "checkpoint.safetensors")[0].encoder.state_dict()

    first, second = weights("a"), weights("b")
    assert all(first[name].equal(second[name]) for name in first)
