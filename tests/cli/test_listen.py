"""`nearfuture listen` with a microphone that is not there, in a terminal that is not there."""

from __future__ import annotations

import signal
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from nearfuture.audio import read
from nearfuture.cli import main
from nearfuture.runtime.bundle import MODELS

CLIP = MODELS.parent / "samples" / "flite-rms-3602.flac"
SAID = "three six zero two"

Speaker = Callable[[Callable[[np.ndarray], None]], None]


class PortAudioError(Exception):
    pass


class Sound(types.ModuleType):
    """sounddevice with a microphone into which a recording is spoken, faster than real time."""

    PortAudioError = PortAudioError

    def __init__(self, speak: Speaker, *, rate: int = 8000, devices: int = 2) -> None:
        super().__init__("sounddevice")
        self.default = types.SimpleNamespace(device=(1, 0))
        self.speak, self.rate, self.opened = speak, rate, 0
        self._devices = [
            {"name": "speakers", "max_input_channels": 0, "default_samplerate": 44100.0},
            {"name": "desk [mic]", "max_input_channels": 2, "default_samplerate": float(rate)},
        ][:devices]
        sound = self

        class InputStream:
            def __init__(self, **options: Any) -> None:
                self.options = options
                assert options["samplerate"] == rate
                assert (options["channels"], options["dtype"]) == (1, "float32")

            def start(self) -> None:
                sound.opened += 1
                self.thread = threading.Thread(target=self._run)
                self.thread.start()

            def close(self) -> None:
                sound.opened -= 1
                self.thread.join()

            def _run(self) -> None:
                buffer = np.zeros((self.options["blocksize"], 1), np.float32)

                def give(block: np.ndarray) -> None:
                    part = buffer[: len(block)]
                    part[:, 0] = block
                    self.options["callback"](part, len(block), None, None)
                    buffer[:] = 9.0  # PortAudio uses its buffer again

                sound.speak(give)
                self.options["finished_callback"]()

        self.InputStream = InputStream

    def query_devices(self, device: Any = None, kind: str | None = None) -> Any:
        if kind is None:
            return self._devices
        number = self.default.device[0] if device is None else device
        if isinstance(number, str):
            found = [one for one in self._devices if number in one["name"]]
            if not found:
                raise ValueError(f"No input device matching {number!r}")
            return found[0]
        if number >= len(self._devices):
            raise PortAudioError("Error querying device -1")
        return self._devices[number]


def blocks(samples: np.ndarray, rate: int = 8000) -> list[np.ndarray]:
    size = rate // 50
    return [samples[at : at + size] for at in range(0, len(samples), size)]


def spoken(samples: np.ndarray, rate: int = 8000) -> Speaker:
    """Says everything, and at once Ctrl-C is pressed: nothing that was said may be lost."""

    def speak(give: Callable[[np.ndarray], None]) -> None:
        for block in blocks(samples, rate):
            give(block)
        signal.raise_signal(signal.SIGINT)

    return speak


@pytest.fixture
def samples() -> np.ndarray:
    return read(CLIP).samples


def use(monkeypatch: pytest.MonkeyPatch, sound: Sound) -> Sound:
    monkeypatch.setitem(sys.modules, "sounddevice", sound)
    return sound


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = 0
    before = signal.getsignal(signal.SIGINT)
    try:
        main(["listen", *map(str, arguments)])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert signal.getsignal(signal.SIGINT) is before
    out, err = capsys.readouterr()
    return code, out, err


def test_ctrl_c_ends_with_the_final_text_and_exit_code_0(
    samples: np.ndarray, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = use(monkeypatch, Sound(spoken(samples)))
    assert run(capsys, "--budget", "400") == (0, f"{SAID}\n", "")
    assert sound.opened == 0


def test_the_devices_own_rate_is_taken(
    samples: np.ndarray, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from nearfuture.audio import resample

    high = resample(samples, 8000, 48_000)
    use(monkeypatch, Sound(spoken(high, 48_000), rate=48_000))
    assert run(capsys, "--device", "desk")[:2] == (0, f"{SAID}\n")


def test_what_is_heard_is_written(
    samples: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    use(monkeypatch, Sound(spoken(samples)))
    assert run(capsys, "--wav-out", tmp_path / "heard.wav")[0] == 0
    heard, rate = soundfile.read(tmp_path / "heard.wav", dtype="float32")
    assert rate == 8000
    assert heard == pytest.approx(samples, abs=1e-4)


def test_a_microphone_that_is_unplugged_ends_the_text_and_does_not_lose_it(
    samples: np.ndarray, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def speak(give: Callable[[np.ndarray], None]) -> None:
        for block in blocks(samples):
            give(block)

    use(monkeypatch, Sound(speak))
    code, out, err = run(capsys)
    assert (code, out) == (2, f"{SAID}\n")
    assert err.count("\n") == 1
    assert "unplugged" in err


def test_sound_that_nobody_takes_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def speak(give: Callable[[np.ndarray], None]) -> None:
        for block in blocks(np.zeros(8000 * 60, np.float32)):
            give(block)  # a minute at once: more than may wait
        signal.raise_signal(signal.SIGINT)

    use(monkeypatch, Sound(speak))
    code, out, err = run(capsys)
    assert (code, out) == (0, "")
    assert "s of audio were lost" in err


def test_devices_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Sound(lambda give: None))
    code, out, _ = run(capsys, "--list-devices")
    assert code == 0
    assert "desk [mic]" in out
    assert "default" in out
    assert "speakers" not in out


@pytest.mark.parametrize(
    ("arguments", "devices", "told"),
    [
        ((), 1, "no microphone"),
        (("--device", "7"), 2, "--list-devices"),
        (("--device", "kitchen"), 2, "kitchen"),
        (("--list-devices",), 1, "no microphone"),
    ],
)
def test_no_device_is_one_line(
    arguments: tuple[str, ...],
    devices: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use(monkeypatch, Sound(lambda give: None, devices=devices))
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert told in err


def test_a_device_that_another_program_holds_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = use(monkeypatch, Sound(lambda give: None))

    def busy(**options: Any) -> None:
        raise PortAudioError("Device unavailable\n[PaErrorCode -9985]")

    monkeypatch.setattr(sound, "InputStream", busy)
    code, out, err = run(capsys)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "Device unavailable [PaErrorCode -9985]" in err


def test_without_sounddevice_the_way_to_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    code, out, err = run(capsys)
    assert (code, out) == (2, "")
    assert "nearfuture[live]" in err


def test_without_portaudio_the_way_to_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    code, _, err = run(capsys, "--list-devices")
    assert code == 2
    assert "libportaudio2" in err


def test_a_recording_stands_in_for_the_microphone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert run(capsys, "--file", CLIP) == (0, f"{SAID}\n", "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--file", CLIP, "--device", "0"), "--device"),
        (("--file", CLIP, "--wav-out", CLIP), "overwrite"),
        (("--file", CLIP, "--wav-out", "heard.mp3"), ".wav"),
        (("--file", CLIP, "--wav-out", "/nowhere/heard.wav"), "cannot be written"),
        (("--file", CLIP, "--model", "digits-bidirectional"), "whole"),
        (("--file", CLIP, "--budget", "40"), "55 ms"),
        (("--file", "missing.wav"), "missing.wav"),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[str | Path, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert told in err
