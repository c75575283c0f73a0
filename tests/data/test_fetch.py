"""Public corpora from a server as servers are: it drops connections, has wrong files, or none."""

import gzip
import hashlib
import io
import json
import lzma
import socket
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nearfuture.data import read_source
from nearfuture.data.corpora import (
    CORPORA,
    Archive,
    PublicCorpus,
    corpora_folder,
    corpus_folder,
    fetch,
    public_corpus,
)
from nearfuture.data.corpora.download import download, verify
from nearfuture.data.corpora.unpack import unpack
from recipes.digits import DigitRecordings
from tests.data.fixtures import hertz_of, tone
from tests.errors import refuses


@dataclass
class Server:
    """What a test wants from it, and what it was asked for."""

    files: dict[str, bytes] = field(default_factory=dict)
    drop_after: list[int] = field(default_factory=list)  # bytes, for one answer after another
    ranges: bool = True
    etag: str = ""
    asked: list[str] = field(default_factory=list)  # the Range of every request
    address: str = ""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("nearfuture.data.corpora.download._PAUSE_S", 0.001)
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            state.asked.append(wanted)
            data = state.files.get(self.path.lstrip("/"))
            if data is None:
                return self.send_error(404)
            begin = int(wanted.removeprefix("bytes=").rstrip("-") or 0) if state.ranges else 0
            if self.headers.get("If-Range", state.etag) != state.etag:
                begin = 0
            if begin and begin >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
            if state.etag:
                self.send_header("ETag", state.etag)
            self.send_header("Content-Length", str(len(data) - begin))
            self.end_headers()
            rest = data[begin:]
            if state.drop_after:
                rest = rest[: state.drop_after.pop(0)]
                self.close_connection = True
            self.wfile.write(rest)
            return None

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    state.address = f"http://127.0.0.1:{listening.server_port}"
    yield state
    listening.shutdown()
    thread.join()
    listening.server_close()


DATA = np.random.default_rng(0).bytes(1_000_000)

# One file -----------------------------------------------------------------------------------------


def test_a_file_arrives(server: Server, tmp_path: Path) -> None:
    server.files["a.bin"] = DATA
    told: list[tuple[int, int | None]] = []
    path = tmp_path / "deep/a.bin"
    download(f"{server.address}/a.bin", path, progress=lambda *far: told.append(far))
    assert path.read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA))
    assert [one.name for one in path.parent.iterdir()] == ["a.bin"]
    download(f"{server.address}/a.bin", path)  # is there
    assert server.asked == [""]


@pytest.mark.parametrize("etag", ["", '"one"'])
def test_a_dropped_connection_goes_on_where_it_stopped(
    server: Server, tmp_path: Path, etag: str
) -> None:
    server.files["a.bin"], server.etag = DATA, etag
    server.drop_after = [300_000, 100_000, 50_000]
    download(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.asked == ["", "bytes=300000-", "bytes=400000-", "bytes=450000-"]


def test_a_server_that_cannot_go_on_begins_again(server: Server, tmp_path: Path) -> None:
    server.files["a.bin"], server.ranges = DATA, False
    server.drop_after = [300_000]
    download(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert len(server.asked) == 2


def test_another_version_is_not_joined_to_the_first(server: Server, tmp_path: Path) -> None:
    server.files["a.bin"], server.etag = DATA, '"one"'
    server.drop_after = [300_000, *[0] * 5]
    with refuses("unavailable"):
        download(f"{server.address}/a.bin", tmp_path / "a.bin")
    server.files["a.bin"], server.etag = DATA[::-1], '"two"'
    download(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA[::-1]


def test_a_connection_that_always_drops_is_given_up_and_kept(
    server: Server, tmp_path: Path
) -> None:
    server.files["a.bin"] = DATA
    server.drop_after = [200_000, *[0] * 5]
    with refuses("unavailable", None, "200000 bytes of a.bin"):
        download(f"{server.address}/a.bin", tmp_path / "a.bin")
    download(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.asked[-1] == "bytes=200000-"


@pytest.mark.parametrize("there", [len(DATA), len(DATA) + 5])
def test_a_part_that_is_all_or_too_much(server: Server, tmp_path: Path, there: int) -> None:
    server.files["a.bin"] = DATA
    (tmp_path / "a.bin.part").write_bytes((DATA + b"other")[:there])
    download(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_no_such_file_there(server: Server, tmp_path: Path) -> None:
    with refuses("not_found", None, "127.0.0.1", "404", "`mirror`"):
        download(f"{server.address}/a.bin", tmp_path / "a.bin")


def test_no_network(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/a.bin"
        with refuses("unavailable", None, "127.0.0.1", "`mirror`", f"put a.bin into {tmp_path}"):
            download(url, tmp_path / "a.bin")


def test_no_network_is_said_at_once_where_a_part_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.bin.part").write_bytes(DATA[:100])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/a.bin"
        with refuses("unavailable", None, "is there a network"):
            download(url, tmp_path / "a.bin")
    assert (tmp_path / "a.bin.part").read_bytes() == DATA[:100]


@pytest.mark.parametrize("torn", ["", '{"a.bin": {"sha', "[]"])
def test_a_record_that_was_torn_is_begun_anew(tmp_path: Path, torn: str) -> None:
    path, record = tmp_path / "a.bin", tmp_path / "fetched.json"
    path.write_bytes(DATA)
    record.write_text(torn)
    verify(path, "url", "", record)
    assert json.loads(record.read_text())["a.bin"]["bytes"] == len(DATA)


def test_only_the_web_is_fetched_from(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"a")
    for url in ("file:///etc/passwd", "a.bin", "ftp://host/a.bin"):
        with refuses("invalid", None, url, "http or https"):
            download(url, tmp_path / "b.bin")


def test_checksums(tmp_path: Path) -> None:
    path, record = tmp_path / "a.bin", tmp_path / "fetched.json"
    path.write_bytes(DATA)
    for kind in ("md5", "sha256"):
        verify(path, "url", f"{kind}:{hashlib.new(kind, DATA).hexdigest()}", record)
    kept = json.loads(record.read_text())
    assert kept["a.bin"]["sha256"] == hashlib.sha256(DATA).hexdigest()
    assert kept["a.bin"]["bytes"] == len(DATA)
    path.write_bytes(DATA[1:])
    with refuses("damaged", None, "of its publisher is 0000"):
        verify(path, "url", "md5:" + "0" * 32, record)
    assert not path.exists()
    assert (tmp_path / "a.bin.wrong").read_bytes() == DATA[1:]


def test_where_nobody_tells_a_checksum_the_first_time_counts(tmp_path: Path) -> None:
    path, record = tmp_path / "a.bin", tmp_path / "fetched.json"
    path.write_bytes(DATA)
    verify(path, "url", "", record)
    verify(path, "url", "", record)
    path.write_bytes(DATA[1:])
    with refuses("damaged", None, "of the first time"):
        verify(path, "url", "", record)


# Archives -----------------------------------------------------------------------------------------


def tar_of(files: dict[str, bytes], kind: str = "gz", *links: tarfile.TarInfo) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{kind}") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for link in links:
            tar.addfile(link)
    return packed.getvalue()


def deb_of(files: dict[str, bytes]) -> bytes:
    members = [("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), ("data.tar.xz", b"")]
    packed = b"!<arch>\n"
    for name, data in members:
        data = lzma.compress(tar_of(files, "")) if name.startswith("data") else data
        packed += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        packed += data + b"\n" * (len(data) % 2)
    return packed


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "", "deb"])
def test_archives_are_unpacked(tmp_path: Path, kind: str) -> None:
    files = {"./a/1.txt": b"one", "a/b/2.bin": DATA[:5000]}
    path = tmp_path / "a.tar"
    path.write_bytes(deb_of(files) if kind == "deb" else tar_of(files, kind))
    unpack(path, tmp_path / "out")
    assert (tmp_path / "out/a/1.txt").read_bytes() == b"one"
    assert (tmp_path / "out/a/b/2.bin").read_bytes() == DATA[:5000]


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/tmp/evil", "..\\evil", "C:\\evil"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(tar_of({"good": b"1", name: b"2"}))
    with refuses("unsupported", None, "do not trust it"):
        unpack(path, tmp_path / "in/out")
    assert not list(tmp_path.rglob("*evil*"))


def test_links_are_left_out(tmp_path: Path) -> None:
    links = []
    for name, kind in (("soft", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)):
        link = tarfile.TarInfo(name)
        link.type, link.linkname = kind, "good" if name == "hard" else "/etc"
        links.append(link)
    (tmp_path / "a.tar").write_bytes(tar_of({"good": b"1", "soft/passwd": b"2"}, "", *links))
    unpack(tmp_path / "a.tar", tmp_path / "out")
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["good", "soft"]
    assert not any(one.is_symlink() for one in (tmp_path / "out").rglob("*"))


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"<html>"])
def test_an_archive_that_is_none(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.tar.gz").write_bytes(damage(tar_of({"a": DATA[:9999]})))
    with refuses("damaged", None, "a.tar.gz"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")


# Corpora ------------------------------------------------------------------------------------------


def sound(hertz: float = 300.0, seconds: float = 0.5, rate: int = 8000, kind: str = "WAV") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, tone(hertz, seconds, rate), rate, format=kind)
    return file.getvalue()


def served(server: Server, corpus: PublicCorpus, *archives: bytes) -> PublicCorpus:
    """The corpus with small archives of its form, on this server."""
    its = []
    for archive, data in zip(corpus.archives, archives, strict=True):
        server.files[archive.name] = data
        its.append(
            Archive(
                url=f"{server.address}/{archive.name}",
                name=archive.name,
                checksum=f"md5:{hashlib.md5(data).hexdigest()}" if archive.checksum else "",
            )
        )
    return replace(corpus, archives=tuple(its))


def small_fsdd(server: Server) -> PublicCorpus:
    top = "free-spoken-digit-dataset-1.0.10"
    files = {f"{top}/README.md": b"digits", f"{top}/recordings/readme.wav": sound()}
    for digit in range(10):
        for take in (0, 4, 5, 6):
            hertz = hertz_of("theo", digit, take)
            files[f"{top}/recordings/{digit}_theo_{take}.wav"] = sound(hertz)
    return served(server, public_corpus("fsdd"), tar_of(files))


def test_digits_come_as_training_reads_them(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = small_fsdd(server)
    doing: list[str] = []
    report = fetch(corpus, tmp_path, progress=lambda what, *_: doing.append(what))
    assert (len(report.cuts), report.rows) == (40, 41)
    assert report.splits["test"][0] == 20
    assert sorted(one.name for one in (tmp_path / "fsdd").iterdir()) == [
        "audio",
        "cuts.jsonl.gz",
        "fetched.json",
        "manifest.tsv",
    ]
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path))
    assert corpus_folder("fsdd") == tmp_path / "fsdd"
    takes = DigitRecordings.load().takes
    counts = {
        split: [len(one) for one in takes["theo", split]] for split in ("train", "dev", "test")
    }
    assert counts == {"train": [1] * 10, "dev": [1] * 10, "test": [2] * 10}
    peak = np.abs(np.fft.rfft(takes["theo", "dev"][7][0])).argmax() / 0.5
    assert abs(peak - hertz_of("theo", 7, 5)) <= 2
    items = read_source(tmp_path / "fsdd").cuts
    assert {(item.speaker, item.split) for item in items} == {("theo", "train"), ("theo", "test")}
    assert [word.split()[0] for word in dict.fromkeys(doing)] == [
        "fetching",
        "unpacking",
        "checking",
        "writing",
    ]
    with refuses("conflict", None, tmp_path / "fsdd"):
        fetch(corpus, tmp_path)


def test_a_fetch_that_stopped_goes_on(server: Server, tmp_path: Path) -> None:
    corpus = small_fsdd(server)
    size = len(server.files[corpus.archives[0].name])
    server.drop_after = [size // 2, *[0] * 5]
    with refuses("unavailable", None, "resumes"):
        fetch(corpus, tmp_path)
    assert corpus_folder(corpus.name, tmp_path) is None
    assert len(fetch(corpus, tmp_path).cuts) == 40
    assert server.asked[-1] == f"bytes={size // 2}-"


def test_an_interrupt_while_unpacking_is_no_corpus(server: Server, tmp_path: Path) -> None:
    def stop(doing: str, done: int, total: int | None) -> None:
        if doing.startswith("unpacking"):
            raise KeyboardInterrupt

    corpus = small_fsdd(server)
    with pytest.raises(KeyboardInterrupt):
        fetch(corpus, tmp_path, progress=stop)
    assert corpus_folder(corpus.name, tmp_path) is None
    assert len(fetch(corpus, tmp_path).cuts) == 40
    assert len(server.asked) == 1  # it was there already


def test_the_first_checksum_is_kept_for_later(server: Server, tmp_path: Path) -> None:
    corpus = small_fsdd(server)
    fetch(corpus, tmp_path)
    for name in ("cuts.jsonl.gz", "manifest.tsv"):
        (tmp_path / "fsdd" / name).unlink()
    server.files[corpus.archives[0].name] = tar_of({"other": b"1"})
    with refuses("damaged", None, "of the first time"):
        fetch(corpus, tmp_path)


def test_a_wrong_file_is_no_corpus(server: Server, tmp_path: Path) -> None:
    corpus = served(server, public_corpus("librispeech-dev-clean"), tar_of({"a": b"1"}))
    corpus = replace(corpus, archives=public_corpus("librispeech-dev-clean").archives)
    with refuses("damaged", None, "of its publisher is 42e2234b"):
        fetch(corpus, tmp_path, mirror=f"{server.address}/")
    assert corpus_folder(corpus.name, tmp_path) is None


def test_a_file_put_there_by_hand(server: Server, tmp_path: Path) -> None:
    corpus = small_fsdd(server)
    name = corpus.archives[0].name
    (tmp_path / "fsdd/download").mkdir(parents=True)
    (tmp_path / "fsdd/download" / name).write_bytes(server.files.pop(name))
    assert len(fetch(corpus, tmp_path).cuts) == 40
    assert server.asked == []


def test_a_mirror(server: Server, tmp_path: Path) -> None:
    corpus = small_fsdd(server)
    name = corpus.archives[0].name
    server.files[f"there/{name}"] = server.files.pop(name)
    assert fetch(corpus, tmp_path, mirror=f"{server.address}/there").cuts


def test_mini_librispeech(server: Server, tmp_path: Path) -> None:
    parts = []
    for part, name in (("train-clean-5", "84-121-0000"), ("dev-clean-2", "174-50-0001")):
        folder = f"LibriSpeech/{part}/{'/'.join(name.split('-')[:2])}"
        trans = f"{folder}/{name[:-5]}.trans.txt"
        files = {
            f"{folder}/{name}.flac": sound(rate=16000, kind="FLAC"),
            trans: f"{name} YES".encode(),
        }
        parts.append(tar_of(files))
    fetch(served(server, public_corpus("mini-librispeech"), *parts), tmp_path)
    items = read_source(tmp_path / "mini-librispeech").cuts
    assert [(item.text, item.speaker, item.split) for item in items] == [
        ("yes", "174", "dev"),
        ("yes", "84", "train"),
    ]


def test_speech_commands(server: Server, tmp_path: Path) -> None:
    names = [f"{word}/0a{n}_nohash_{n}.wav" for word in ("yes", "no") for n in range(3)]
    files = {name: sound(300 + 10 * n, rate=16000) for n, name in enumerate(names)}
    files["_background_noise_/hum.wav"] = sound(rate=16000)
    files["validation_list.txt"] = b"yes/0a1_nohash_1.wav\n"
    files["testing_list.txt"] = b"no/0a2_nohash_2.wav\n"
    fetch(served(server, public_corpus("speech-commands"), tar_of(files)), tmp_path)
    told = {
        item.name.removeprefix("audio/"): item
        for item in read_source(tmp_path / "speech-commands").cuts
    }
    assert {name: (one.text, one.speaker, one.split) for name, one in told.items()} == {
        "no/0a0_nohash_0.wav": ("no", "0a0", "train"),
        "no/0a1_nohash_1.wav": ("no", "0a1", "train"),
        "no/0a2_nohash_2.wav": ("no", "0a2", "test"),
        "yes/0a0_nohash_0.wav": ("yes", "0a0", "train"),
        "yes/0a1_nohash_1.wav": ("yes", "0a1", "dev"),
        "yes/0a2_nohash_2.wav": ("yes", "0a2", "train"),
    }


def test_prompts(server: Server, tmp_path: Path) -> None:
    folder = "./usr/share/asterisk/sounds/en_US_f_Allison"
    names = ("activated", "beep", "digits/1")
    sounds = {f"{folder}/{name}.wav": sound(300 + 50 * len(name)) for name in names}
    text = b"; a comment\nactivated: Activated.\n\nbeep: [beep]\ndigits/1: one\n"
    doc = "./usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz"
    its = deb_of(sounds), deb_of({doc: gzip.compress(text)})
    report = fetch(served(server, public_corpus("prompts"), *its), tmp_path)
    assert [(item.path.name, item.text) for item in report.cuts] == [
        ("activated.wav", "activated"),
        ("1.wav", "one"),
    ]


def test_every_corpus_says_where_it_is_and_what_it_may_be_used_for() -> None:
    assert {"fsdd", "prompts", "speech-commands", "mini-librispeech"} < set(CORPORA)
    for corpus in CORPORA.values():
        assert corpus.licence
        assert corpus.archives
        for archive in corpus.archives:
            assert archive.url.startswith(("https://", "http://deb.debian.org/"))
            kind, _, digits = archive.checksum.partition(":")
            assert len(digits) == {"": 0, "md5": 32, "sha256": 64}[kind]
    with refuses("not_found", "name", "'libri'", "fsdd"):
        public_corpus("libri")


def test_where_corpora_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARFUTURE_CORPORA", str(tmp_path))
    assert corpora_folder() == tmp_path
    assert corpora_folder(tmp_path / "a") == tmp_path / "a"
    monkeypatch.delenv("NEARFUTURE_CORPORA")
    monkeypatch.chdir(tmp_path)
    with refuses("invalid", "to", "NEARFUTURE_CORPORA"):
        corpora_folder()
