"""Error against latency as a picture: what is drawn is what was measured, and says what was not."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from nearfuture.evaluation import (
    Evaluation,
    Hypothesis,
    evaluate_bundles,
    plot_error_against_latency,
)
from tests.errors import refuses
from tests.evaluation.samples import ITEMS


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return evaluate_bundles("digits", "digits-bidirectional", ITEMS[:4])


def unlike(evaluation: Evaluation) -> Evaluation:
    return dataclasses.replace(evaluation, results=evaluation.results[:2])


def drawn(
    evaluations: dict[str, Evaluation],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    **options: str,
) -> tuple[dict[str, Any], str]:
    """The points of each labelled line, the texts beside them, and the SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    found: dict[str, Any] = {}
    save = Figure.savefig

    def look(figure: Figure, path: Path) -> None:
        (axes,) = figure.axes
        found["texts"] = [one.get_text() for one in axes.texts]
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            line = handle if hasattr(handle, "get_xdata") else handle.lines[0]
            found[label] = (list(line.get_xdata()), list(line.get_ydata()))
        figure.draw_without_rendering()
        at = figure.legends[0].get_window_extent()
        found["margins"] = at.x0, figure.bbox.width - at.x1
        save(figure, path)

    monkeypatch.setattr(Figure, "savefig", look)
    path = folder / "plot.svg"
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        plot_error_against_latency(evaluations, path, **options)  # type: ignore[arg-type]
    return found, path.read_text(encoding="utf-8")


def test_points_are_the_figures(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, text = drawn({"digits": evaluation}, tmp_path, monkeypatch)
    summary = evaluation.summary()
    x, y = found["digits, streaming"]
    assert x == [55.0, 215.0, 375.0, 815.0]
    assert y == [100 * head.cer.value for head in summary.heads]
    assert summary.twin is not None
    assert found["bidirectional twin"][1] == [100 * summary.twin.cer.value] * 2
    assert {"55 ms", "215 ms", "375 ms", "815 ms"} <= set(found["texts"])
    assert f"{summary.utterances} recordings, {summary.words} words" in text


@pytest.mark.parametrize("name", ["digits", "real recordings alone, of many speakers"])
def test_the_legend_stays_in_the_picture(
    evaluation: Evaluation, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = drawn({name: evaluation, f"{name}, too": unlike(evaluation)}, tmp_path, monkeypatch)
    assert min(found["margins"]) >= 0


def test_what_was_not_measured_is_said(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, text = drawn({"digits": evaluation}, tmp_path, monkeypatch, measure="wer")
    (label,) = [label for label in found if "Deep Speech 2" in label]
    assert "not measured here" in label
    assert "not measured here" in text
    summary = evaluation.summary()
    assert summary.twin is not None
    assert found[label][0] == [760.0]
    assert found[label][1] == pytest.approx([1.05 * 100 * summary.twin.wer.value])
    assert "Word error rate" in text


def test_a_twin_that_all_have_in_common_is_drawn_once(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same, _ = drawn({"a": evaluation, "b": evaluation}, tmp_path, monkeypatch)
    assert sum("twin" in label and "drawn" not in label for label in same) == 1
    other, _ = drawn({"a": evaluation, "b": unlike(evaluation)}, tmp_path, monkeypatch)
    assert {"a, bidirectional twin", "b, bidirectional twin"} <= set(other)
    assert other["a, streaming"][0] == [50.0, 210.0, 370.0, 810.0]  # beside each other
    assert other["b, streaming"][0] == [60.0, 220.0, 380.0, 820.0]


def test_without_a_twin_nothing_is_relative_to_it(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = dataclasses.replace(
        evaluation,
        twin=None,
        results=tuple(
            dataclasses.replace(one, twin=None, aligned=()) for one in evaluation.results
        ),
    )
    found, text = drawn({"digits": alone}, tmp_path, monkeypatch)
    assert list(found) == ["texts", "digits, streaming", "margins"]
    assert "Deep Speech" not in text


def test_nothing_is_relative_to_a_twin_that_reads_nothing(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = tuple(
        dataclasses.replace(one, twin=Hypothesis.scored(one.reference, ""))
        for one in evaluation.results
    )
    mine = {"my streaming": dataclasses.replace(evaluation, results=deaf)}
    found, _ = drawn(mine, tmp_path, monkeypatch)
    assert found["bidirectional twin"][1] == [100.0] * 2
    assert set(found) == {"texts", "my streaming", "bidirectional twin", "margins"}


def test_one_recording_has_no_bars(evaluation: Evaluation, tmp_path: Path) -> None:
    one = dataclasses.replace(evaluation, results=evaluation.results[:1])
    plot_error_against_latency({"digits": one}, tmp_path / "new" / "a.svg")
    assert re.search("<svg", (tmp_path / "new" / "a.svg").read_text(encoding="utf-8"))


def test_a_png_is_light_and_large_enough(evaluation: Evaluation, tmp_path: Path) -> None:
    from matplotlib.image import imread

    plot_error_against_latency({"digits": evaluation}, tmp_path / "a.png")
    picture = imread(tmp_path / "a.png")
    assert picture.shape[:2] == (960, 1400)
    assert picture[0, 0, :3].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "count", "code", "parameter"),
    [("a.pdf", 1, "unsupported", "path"), ("a.png", 0, "invalid", "evaluations")],
)
def test_other_files_and_empty_plots_are_refused(
    evaluation: Evaluation, tmp_path: Path, name: str, count: int, code: str, parameter: str
) -> None:
    with refuses(code, parameter):
        plot_error_against_latency({"digits": evaluation} if count else {}, tmp_path / name)
