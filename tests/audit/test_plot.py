"""The plot: the same picture, and a clear word where it cannot be drawn."""

import sys
from collections.abc import Iterator

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

from nearfuture.audit.render.cells import COLOURS, cells, edge
from nearfuture.audit.render.plot import plot
from nearfuture.error import NearfutureError
from tests.audit.reports import REPORTS

WITH_MATRIX = [
    name for name, report in REPORTS.items() if report.matrix is not None and report.matrix.size
]


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    backend = matplotlib.get_backend()
    matplotlib.use("agg")
    yield
    pyplot.close("all")
    matplotlib.use(backend)


@pytest.mark.parametrize("name", WITH_MATRIX)
def test_every_matrix_can_be_drawn(name: str) -> None:
    axes = plot(REPORTS[name])
    axes.figure.canvas.draw()
    assert len(axes.images) == 1


def test_cells_lines_and_words() -> None:
    report = REPORTS["chunked"]
    axes = plot(report)
    image = axes.images[0]
    assert (np.asarray(image.get_array()) == cells(report)).all()
    assert image.get_extent() == [-0.5, 159.5, 159.5, -0.5]
    assert [to_hex(image.cmap(image.norm(kind))) for kind in COLOURS] == list(COLOURS.values())
    now, limit = (np.asarray(line.get_xdata()) for line in axes.lines)
    assert (now[::2] == edge(report, 0) - 0.5).all()
    assert (limit[::2] == edge(report, 8) - 0.5).all()
    assert axes.lines[0].get_path_effects() == []
    assert len(axes.lines[1].get_path_effects()) == 1  # a rim, so that it is seen on every colour
    assert axes.get_xlabel() == "input frame (each 40 ms)"
    legend = axes.get_legend()
    assert legend is not None
    assert [words.get_text() for words in legend.get_texts()] == [
        "depends on its own frame and before",
        "looks ahead, as far as allowed",
        "looks ahead, too far",
        "end of its own frame",
        "the limit",
    ]


def test_without_frame_ms_and_limit_there_is_less() -> None:
    axes = plot(REPORTS["bidirectional"])
    assert axes.get_ylabel() == "output frame"
    assert len(axes.lines) == 1


def test_samples_are_called_so() -> None:
    axes = plot(REPORTS["samples"])
    assert axes.get_xlabel() == "input sample (each 0.125 ms)"
    assert axes.get_ylabel() == "output frame (each 5 ms)"
    legend = axes.get_legend()
    assert legend is not None
    read = [words.get_text() for words in legend.get_texts()]
    assert read[0] == "depends on its own sample and before"
    assert "end of its own sample" in read


def test_a_single_cell_of_four_million_is_drawn() -> None:
    image = np.asarray(plot(REPORTS["long"]).images[0].get_array())
    assert image.shape == (400, 400)
    assert (image == 3).sum() == 1


def test_it_draws_where_it_is_told() -> None:
    _, axes = pyplot.subplots()
    assert plot(REPORTS["causal"], axes) is axes


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NearfutureError, match=r"matplotlib.*: pip install matplotlib$"):
        plot(REPORTS["causal"])


@pytest.mark.parametrize("name", ["lookahead only", "nothing came out"])
def test_without_a_matrix_it_says_why(name: str) -> None:
    with pytest.raises(NearfutureError, match="no dependency matrix to draw"):
        plot(REPORTS[name])
