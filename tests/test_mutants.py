"""The runner of the mutants fails where it should."""

import dataclasses
from pathlib import Path

import pytest

from tests import mutants


def test_every_mutant_applies_and_changes_one_line(tmp_path: Path) -> None:
    assert len(mutants.MUTANTS) >= 12
    for i, mutant in enumerate(mutants.MUTANTS):
        mutants.apply(mutant, tmp_path / str(i))
        copy = tmp_path / str(i) / "nearfuture" / mutant.file
        before = (mutants.PACKAGE / mutant.file).read_text(encoding="utf-8").split("\n")
        after = copy.read_text(encoding="utf-8").split("\n")
        changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        assert changed == [(mutant.old, mutant.new)]


def test_a_mutant_that_does_not_apply_is_an_error(tmp_path: Path) -> None:
    lost = dataclasses.replace(mutants.MUTANTS[0], old="no such line")
    with pytest.raises(SystemExit, match="occurs 0 times"):
        mutants.apply(lost, tmp_path)


@pytest.mark.slow
def test_a_mutant_that_survives_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    first = mutants.MUTANTS[0]
    harmless = dataclasses.replace(first, name="a comment", new=f"{first.old}  # harmless")
    assert mutants.main([harmless, first]) == 1
    printed = capsys.readouterr().out
    assert "SURVIVED" in printed
    assert "1 of 2 mutants caught" in printed
