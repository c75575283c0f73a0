"""`nearfuture serve` as a process: it starts, is stopped, killed and started again."""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from websockets.sync.client import ClientConnection, connect

from nearfuture.cli import main
from nearfuture.cli.serve import _url
from nearfuture.runtime import load
from tests.patience import PATIENCE_S
from tests.serving.served import hello, receive, said, send, soon, transcript, until_the_end

SPEECH = said("flite-slt-720", "flite-rms-991")


@contextmanager
def process(
    *arguments: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A server in a process of its own, and the ports it listens on."""
    with subprocess.Popen(
        [sys.executable, "-m", "nearfuture", "serve", "--max-load", "1e9", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as server:
        try:
            assert server.stderr is not None
            ports = []
            expected = 1 + arguments.count("--listen")
            for line in server.stderr:
                if line.startswith("nearfuture serves"):
                    ports.append(int(line.rsplit(":", 1)[1]))
                if len(ports) == expected:
                    break
            assert len(ports) == expected, "the server did not start"
            yield server, ports
        finally:
            server.kill()


def url(port: int) -> str:
    return f"ws://127.0.0.1:{port}/stream"


def test_sigterm_lets_streams_finish_and_ends_with_0() -> None:
    expected = load("digits", 400).transcribe(SPEECH).text
    with process("--port", "0", "--budget", "400", "--log", "json") as (server, (port,)):
        with connect(url(port), compression=None) as client:
            assert hello(client)["budget"]["worst_ms"] == 375.0
            client.send(SPEECH[:9000].tobytes())
            server.send_signal(signal.SIGTERM)

            def refused() -> bool:
                with connect(url(port), compression=None) as other:
                    return bool(hello(other).get("code") == "draining")

            assert soon(refused)
            client.send(SPEECH[9000:].tobytes())
            send(client, "finish")
            assert transcript(until_the_end(client)) == expected
        assert server.wait(30) == 0
        assert server.stderr is not None
        log = server.stderr.read()
    assert [json.loads(line)["message"] for line in log.splitlines()][-1] == "stopped"
    assert not set(expected.split()) & set(re.findall(r"\w+", log))


def test_two_signals_end_it_at_once() -> None:
    with process("--port", "0") as (server, (port,)), connect(url(port)) as client:
        hello(client)
        server.send_signal(signal.SIGINT)
        assert soon(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/health").status == 200)
        server.send_signal(signal.SIGINT)
        until_the_end(client)
        assert client.protocol.close_code in (1000, 1006, 1012)
        assert server.wait(30) == 0


def test_a_thread_that_hangs_does_not_keep_the_process() -> None:
    script = (
        "import threading, time; from nearfuture.cli.serve import _end_within\n"
        "threading.Thread(target=time.sleep, args=(600,)).start(); _end_within(0.0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0
    assert "ended without it" in ended.stderr


def test_killed_and_started_again_on_the_same_port() -> None:
    with process("--port", "0") as (server, (port,)), connect(url(port)) as client:
        hello(client)
        client.send(SPEECH.tobytes())
        server.kill()
        until_the_end(client)
        assert client.protocol.close_code == 1006
        server.wait(30)
        with process("--port", str(port)) as (_, (again,)), connect(url(again)) as other:
            hello(other, budget_ms=400)
            other.send(SPEECH.tobytes())
            send(other, "finish")
            text = transcript(until_the_end(other))
    assert text == load("digits", 400).transcribe(SPEECH).text


def test_a_client_that_connects_again_goes_on_where_its_last_final_text_ended() -> None:
    """As docs/serving.md says of a replica that dies: what was not final is sent again."""
    speech = np.concatenate([SPEECH, np.zeros(12_000, np.int16), SPEECH])
    texts: list[str] = []
    ends: list[int] = []

    def speak(client: ClientConnection, heard: int, *, last: bool) -> None:
        hello(client, budget_ms=400)
        client.send(speech[heard:].tobytes())
        if last:
            send(client, "finish")
        while True:
            update = receive(client)
            if update["final"] and update["committed"]:
                texts.append(update["committed"])
                ends.append(heard + round(8 * update["audio_ms"]))
                if not last:
                    return
            if update["ended"]:
                return

    with process("--port", "0") as (server, (port,)), connect(url(port)) as client:
        speak(client, 0, last=False)
        server.kill()
        until_the_end(client)
        server.wait(30)
        with pytest.raises(ConnectionRefusedError), connect(url(port)):  # nobody is there
            pass
        with process("--port", str(port)) as _:

            def again() -> bool:
                try:
                    with connect(url(port)) as other:
                        speak(other, ends[0], last=True)
                except OSError:
                    return False
                return True

            assert soon(again, 60)
    model = load("digits", 400)
    first = model.transcribe(speech[: ends[0]]).text
    assert " ".join(texts) == f"{first} {model.transcribe(speech[ends[0] :]).text}"


def test_a_port_of_its_own_and_a_key_from_the_environment() -> None:
    arguments = ("--port", "0", "--listen", "stream=0")
    with process(*arguments, NEARFUTURE_API_KEY="secret") as (_, (_, own)):
        key = {"Authorization": "Bearer secret"}
        with connect(f"ws://127.0.0.1:{own}", additional_headers=key) as client:
            answer = hello(client)
            assert answer["type"] == "ready", answer


@pytest.mark.parametrize(
    ("host", "url"), [("127.0.0.1", "wss://127.0.0.1:80"), ("::1", "wss://[::1]:80")]
)
def test_an_address_is_shown_as_clients_write_it(host: str, url: str) -> None:
    assert _url("wss", host, 80) == url
    assert urlsplit(_url("wss", host, 80)).hostname == host


def test_help_shows_no_tuples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    out = capsys.readouterr().out
    assert "[default: digits]" in " ".join(out.replace("│", " ").split())
    assert "()" not in out


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(["serve", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert (stopped.value.code, out, err.count("\n")) == (2, "", 1)
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model", "nobody"], "there is no model 'nobody'"),
        (["--model", "digits", "--model", "digits"], "two models are called digits"),
        (["--model", "digits-bidirectional"], "is bidirectional"),
        (["--budget", "40"], "55 ms"),
        (["--port", "65536"], "port 65536"),
        (["--host", "256.0.0.1"], "cannot listen on 256.0.0.1:8000"),
        (["--listen", "vosk"], "NAME=PORT"),
        (["--listen", "sip=5060"], "vosk"),
        (["--silence-ms", "0"], "--silence-ms must be above 0"),
        (["--longest-ms", "inf"], "--longest-ms, both finite, not 800 and inf"),
        (["--max-streams", "0"], "--max-streams is 0"),
        (["--max-connections", "-1"], "--max-connections is -1"),
        (["--max-waiting-seconds", "0"], "--max-waiting-seconds is 0"),
        (["--max-load", "nan"], "--max-load is nan"),
        (["--idle-seconds", "nan"], "--idle-seconds is nan"),
        (["--drain-seconds", "-1"], "--drain-seconds is -1"),
        (["--threads", "0"], "--threads is 0"),
        (["--threads", "-3"], "--threads is -3"),
        (["--tls-cert", "a.pem"], "belong together"),
        (["--api-key-file", "/nowhere/key"], "cannot read the API key"),
        (["--port", "0", "--tls-cert", "a.pem", "--tls-key", "b.pem"], "cannot be used"),
    ],
)
def test_a_mistake_is_one_line_and_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in fails(capsys, *arguments)


def test_a_port_in_use_is_one_line_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}: address already in use" in fails(capsys, "--port", port)


def edited(bundle: Path, folder: Path, **values: object) -> Path:
    folder.mkdir()
    for file in bundle.iterdir():
        (folder / file.name).symlink_to(file) if file.name != "model.json" else None
    manifest = json.loads((bundle / "model.json").read_text(encoding="utf-8"))
    (folder / "model.json").write_text(json.dumps(manifest | values), encoding="utf-8")
    return folder


def test_a_bundle_that_is_not_to_be_trusted_is_one_line_and_2(
    bundle_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = edited(bundle_folder, tmp_path / "newer", schema=99)
    assert "schema 99" in fails(capsys, "--model", newer)
    linked = edited(bundle_folder, tmp_path / "linked")
    assert "link out of the folder" in fails(capsys, "--model", linked)
    outside = edited(bundle_folder, tmp_path / "outside", files={"../step.onnx": {}})
    assert "no name for a file inside" in fails(capsys, "--model", outside)
    (tmp_path / "corrupt.zip").write_bytes(b"PK\x03\x04 and then nothing")
    assert "cannot be read as a model" in fails(capsys, "--model", tmp_path / "corrupt.zip")


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x08\x07" * 5000])
def test_a_graph_that_is_none_is_one_line_and_2(
    bundle_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes
) -> None:
    """Its checksum is right: somebody has written the bundle that way."""
    folder = tmp_path / "odd"
    shutil.copytree(bundle_folder, folder)
    (folder / "step.onnx").write_bytes(content)
    manifest = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    manifest["files"]["step.onnx"] = {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    (folder / "model.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert "step.onnx" in fails(capfd, "--model", folder, "--port", 0)


def test_a_damaged_bundle_and_a_zip_that_leaves_its_folder_are_one_line_and_2(
    bundle_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(bundle_folder, cut)
    (cut / "step.onnx").write_bytes((cut / "step.onnx").read_bytes()[:-100])
    assert "step.onnx is damaged" in fails(capsys, "--model", cut)
    (cut / "step.onnx").unlink()
    assert "step.onnx is missing" in fails(capsys, "--model", cut)
    (cut / "model.json").write_text("{")
    assert "model.json is not JSON" in fails(capsys, "--model", cut)
    leaving = tmp_path / "leaving.zip"
    with zipfile.ZipFile(leaving, "w") as archive:
        for file in bundle_folder.iterdir():
            archive.write(file, file.name)
        archive.writestr("../../evil", "x")
    assert "leaves the folder" in fails(capsys, "--model", leaving)
    assert not (tmp_path.parent / "evil").exists()


def test_an_empty_key_is_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("\n")
    assert "is empty" in fails(capsys, "--api-key-file", tmp_path / "key")


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_a_variable_that_is_set_but_empty_does_not_open_the_server(
    key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEARFUTURE_API_KEY", key)
    assert "NEARFUTURE_API_KEY is set but empty" in fails(capsys, "--port", "0")


def test_auto_says_which_precision_it_chose() -> None:
    command = [sys.executable, "-m", "nearfuture", "serve", "--port", "0", "--precision", "auto"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8") as server:
        try:
            assert server.stderr is not None
            assert server.stderr.readline() == "nearfuture computes digits in float32\n"
            assert server.stderr.readline().startswith("nearfuture serves digits at http://")
        finally:
            server.kill()
