"""A copy of the lab: what it records, what it says about the rest, and how it is written."""

import base64
import hashlib
import importlib
import io
import json
import math
import os
import shutil
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Literal

import pytest

from nearfuture.cli import main
from nearfuture.error import NearfutureError
from nearfuture.lab import PAGES, copy
from nearfuture.lab.copy import onnxruntime_web
from nearfuture.lab.copy.grid import LONGEST_AXIS, MOST, grid_of
from nearfuture.lab.endpoint import Between, Text
from nearfuture.lab.page import Media, Page, as_json
from nearfuture.lab.pages import padding
from nearfuture.lab.texts import LANGUAGES
from tests.errors import refuses

Written = Annotated[str, Text(4)]

onnxruntime_module = importlib.import_module("nearfuture.lab.copy.onnxruntime_web")


def few(
    a: Annotated[int, Between(1, 3)] = 2, b: Literal["x", "y"] = "y", on: bool = False
) -> object:
    return a, b, on


def many(
    m: Annotated[int, Between(0, 49)] = 7,
    n: Annotated[float, Between(0.5, 30, 0.5)] = 2,
    b: Literal["x", "y"] = "x",
    text: Written = "abc",
) -> object:
    return m, n, b, text


def long(m: Annotated[int, Between(5, 1000)] = 400) -> object:
    return m


def test_every_combination_is_recorded_where_they_are_few() -> None:
    grid = grid_of(few)
    places = list(grid.places())
    assert len(places) == len(set(places)) == 3 * 2 * 2
    assert grid.whole
    assert grid.values(grid.start) == {"a": 2, "b": "y", "on": False}


def test_where_they_are_many_numbers_move_alone_and_choices_with_them() -> None:
    grid = grid_of(many)
    values = [grid.values(place) for place in grid.places()]
    assert len(values) == 2 * (50 + 60 - 1)
    assert not grid.whole
    for each in values:
        assert each["m"] == 7 or each["n"] == 2
        assert each["text"] == "abc"
    grid = grid_of(many, most=150)
    assert len(list(grid.places())) == 50 + 60 + 2 - 2
    assert grid.groups == (("m",), ("n",), ("b",), ("text",))


def test_a_long_axis_is_thinned_and_its_slider_with_it() -> None:
    grid = grid_of(long)
    (values,) = grid.axes.values()
    assert len(values) <= LONGEST_AXIS
    assert 400 in values
    control = grid.controls(long)["m"]
    assert range(control["min"], control["max"] + 1, control["step"]) == range(
        values[0], values[-1] + 1, values[1] - values[0]
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_can_be_recorded(page: Page) -> None:
    assert set(page.unrecorded) | set(page.in_browser) <= set(page.endpoints)
    for name, function in page.endpoints.items():
        if name not in page.unrecorded:
            grid = grid_of(function)
            assert len(list(grid.places())) <= MOST
            assert all(not isinstance(n, float) or math.isfinite(n) for n in grid.start)


def counted() -> Iterator[object]:
    yield {"n": 1}
    yield {"n": 2}


def sound() -> Media:
    return Media(b"RIFF", "audio/wav")


TINY = Page(
    name=padding.PAGE.name,
    endpoints={"drift": few, "counted": counted, "sound": sound},
    module=padding.__name__,
    behind=padding.PAGE.behind,
)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "lab"
    copy.export(folder, pages=[TINY])
    return folder


def test_an_answer_is_that_of_the_running_lab(copied: Path) -> None:
    recorded = copied / "recorded" / TINY.name
    assert json.loads((recorded / "drift" / "1-1-0.json").read_text()) == as_json(few())
    assert json.loads((recorded / "drift" / "2-0-1.json").read_text()) == as_json(few(3, "x", True))
    assert (recorded / "counted" / "0.jsonl").read_text() == '{"n":1}\n{"n":2}\n'
    assert (recorded / "sound" / "0.wav").read_bytes() == b"RIFF"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_file_that_a_page_names_is_there(copied: Path, language: str) -> None:
    for file in (f"{language}/index.html", f"{language}/{TINY.name}.html", "index.html"):
        html = (copied / file).read_text(encoding="utf-8")
        links = [part.split('"')[0] for part in html.replace('src="', 'href="').split('href="')[1:]]
        for link in links:
            if link.startswith(("#", "http")):
                continue
            target = (copied / file).parent / link
            assert (target / "index.html" if target.is_dir() else target).is_file(), link


def test_a_page_says_what_is_recorded(copied: Path) -> None:
    html = (copied / "en" / f"{TINY.name}.html").read_text(encoding="utf-8")
    assert "This is a copy of the lab: it shows answers" in html
    assert "unsafe-inline" not in html


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with refuses("conflict", "export"):
        copy.export(tmp_path, pages=[TINY])
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]
    with refuses("conflict", "export"):
        copy.export(tmp_path / "thesis.txt", pages=[TINY])


def test_an_older_copy_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    copy.export(folder, pages=[TINY])
    (folder / "en" / "gone.html").touch()
    copy.export(folder, pages=[TINY], language="ko")
    assert not (folder / "en" / "gone.html").exists()
    assert 'data-opens="ko"' in (folder / "index.html").read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["lab"]


def test_what_is_no_copy_is_not_lost_with_one(tmp_path: Path) -> None:
    copy.export(tmp_path, pages=[TINY])
    (tmp_path / ".git").mkdir()
    with refuses("conflict", "export", ".git"):
        copy.export(tmp_path, pages=[TINY])
    assert (tmp_path / ".git").is_dir()
    assert (tmp_path / "index.html").is_file()


@pytest.mark.skipif(os.name == "nt", reason="links are for administrators there")
def test_a_link_goes_on_leading_to_the_copy(tmp_path: Path) -> None:
    link, folder = tmp_path / "link", tmp_path / "elsewhere" / "lab"
    link.symlink_to(folder)
    for language in LANGUAGES:  # first it leads nowhere
        copy.export(link, pages=[TINY], language=language)
        assert link.is_symlink()
        assert f'data-opens="{language}"' in (folder / "index.html").read_text(encoding="utf-8")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["elsewhere", "link"]
    assert [each.name for each in folder.parent.iterdir()] == ["lab"]


def test_a_copy_that_cannot_take_its_place_leaves_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lab"
    copy.export(folder, pages=[TINY], language="ko")
    rename, names = Path.rename, list[str]()

    def interrupted(self: Path, target: Path) -> Path:
        names.append(self.name)
        if len(names) == 2:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        copy.export(folder, pages=[TINY], language="en")
    assert 'data-opens="ko"' in (folder / "index.html").read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["lab"]


def test_a_package_without_an_end_is_not_read_to_it() -> None:
    if Path("/dev/zero").exists():
        with refuses("damaged", "onnxruntime_web"):
            onnxruntime_web(Path("/dev/zero"))


def test_an_interrupted_copy_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(a: Annotated[int, Between(0, 3)] = 0) -> object:
        if a == 2:
            raise KeyboardInterrupt
        return a

    page = Page(name=TINY.name, endpoints={"drift": interrupted}, module=TINY.module)
    with pytest.raises(KeyboardInterrupt):
        copy.export(tmp_path / "lab", pages=[page])
    assert list(tmp_path.iterdir()) == []


def test_an_endpoint_that_refuses_is_recorded_as_it_answers(tmp_path: Path) -> None:
    def odd(a: Annotated[int, Between(0, 3)] = 0) -> object:
        if a % 2:
            raise NearfutureError("`a` is even", parameter="a")
        return a

    page = Page(name=TINY.name, endpoints={"odd": odd}, module=TINY.module)
    copy.export(tmp_path / "lab", pages=[page])
    answers = tmp_path / "lab" / "recorded" / TINY.name / "odd"
    assert json.loads((answers / "2.json").read_text()) == 2
    assert json.loads((answers / "3.json").read_text())["error"]["param"] == "a"


def package(about: bytes = b"{}", **files: bytes) -> bytes:
    """An npm package of these files in `dist`."""
    content = io.BytesIO()
    named = {"package.json": about} | {f"dist/{name}": each for name, each in files.items()}
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, each in named.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(each)
            archive.addfile(member, io.BytesIO(each))
    return content.getvalue()


def test_another_package_is_not_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "onnxruntime-web.tgz"
    file.write_bytes(package(**{"ort.wasm.min.mjs": b""}))
    with refuses("damaged", "onnxruntime_web"):
        onnxruntime_web(file)
    with refuses("not_found", "onnxruntime_web"):
        onnxruntime_web(tmp_path / "none.tgz")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, dict[str, bytes]]]:
    """A registry of npm packages on this machine: its address, and what it answers, by path."""
    answers: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        for name, value in (
            ("registry", address),
            ("fetch_retries", "0"),
            ("noproxy", "127.0.0.1"),
        ):
            monkeypatch.setenv(f"npm_config_{name}", value)
        yield address, answers
        server.shutdown()


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_npm_fetches_the_package_from_its_registry(
    registry: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address, answers = registry
    monkeypatch.setenv("npm_config_cache", str(tmp_path))
    with refuses("unavailable", "onnxruntime_web", "404", "npm pack"):
        onnxruntime_web()
    about = json.dumps({"name": "onnxruntime-web", "version": onnxruntime_module.VERSION}).encode()
    content = package(about, **{name: name.encode() for name in onnxruntime_module.FILES.values()})
    version = {
        "name": "onnxruntime-web",
        "version": onnxruntime_module.VERSION,
        "dist": {"tarball": f"{address}/it.tgz", "shasum": hashlib.sha1(content).hexdigest()},
    }
    answers["/onnxruntime-web"] = json.dumps(
        {"name": "onnxruntime-web", "versions": {onnxruntime_module.VERSION: version}}
    ).encode()
    answers["/it.tgz"] = content
    sha512 = base64.b64encode(hashlib.sha512(content).digest()).decode()
    monkeypatch.setattr(onnxruntime_module, "SHA512", sha512)
    found = onnxruntime_web()
    assert found == {name: packed.encode() for name, packed in onnxruntime_module.FILES.items()}


def test_without_npm_a_copy_says_what_fetches_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with refuses("unavailable", "onnxruntime_web", "no npm", "npm pack onnxruntime-web@"):
        onnxruntime_web()


def test_a_folder_that_is_refused_is_refused_before_anything_is_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("dear")
    with pytest.raises(SystemExit) as ended:
        main(["lab", "--export", str(tmp_path), "--onnxruntime-web", str(tmp_path / "none.tgz")])
    assert ended.value.code == 2
    assert "not empty and no copy of the lab" in " ".join(capsys.readouterr().err.split())
