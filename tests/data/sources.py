"""Sources of recordings in every form, with everything wrong that people have."""

import gzip
import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import soundfile

KOREAN = "안녕하세요"
DECOMPOSED = unicodedata.normalize("NFD", KOREAN)


def write_audio(
    path: Path, seconds: float = 3.0, *, rate: int = 8000, channels: int = 1, seed: int = 0
) -> Path:
    """Noise of its own for every seed, in the format that the name ends with."""
    rng = np.random.default_rng(seed)
    samples = 0.1 * rng.standard_normal((round(seconds * rate), channels))
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples.astype(np.float32), rate)
    return path


def write_text(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def write_hard_folder(folder: Path) -> Path:
    """Eight usable recordings, and one of each thing that may be wrong with the others."""
    for number, rate in enumerate((8000, 16000, 44100)):
        write_audio(folder / f"rate{rate}.wav", rate=rate, seed=number)
        write_text(folder / f"rate{rate}.txt", f"three seconds at {rate}")
    write_audio(folder / "long.wav", 60.0, seed=3)
    write_text(folder / "long.txt", "a whole minute")
    write_audio(folder / "korean.flac", seed=4)
    write_text(folder / "korean.txt", DECOMPOSED)
    write_audio(folder / "windows.ogg", rate=16000, seed=5)
    write_text(folder / "windows.txt", "\ufeffsaved by\r\nNotepad\r\n".encode())
    write_audio(folder / "sub folder/stereo.wav", channels=2, seed=6)
    write_text(folder / "sub folder/stereo.txt", "both channels")
    write_audio(folder / "short.wav", 0.5, seed=7)
    write_text(folder / "short.txt", "far too many words for it")
    cut = write_audio(folder / "cut.wav", seed=8)
    cut.write_bytes(cut.read_bytes()[:20_000])
    write_text(folder / "cut.txt", "its end is missing")
    write_text(folder / "noise.wav", b"this is no audio at all")
    write_text(folder / "noise.txt", "what is it")
    write_audio(folder / "silent.wav", seed=9)
    write_text(folder / "silent.txt", "\ufeff \r\n".encode())
    write_audio(folder / "untold.wav", seed=10)
    write_audio(folder / "latin.wav", seed=11)
    write_text(folder / "latin.txt", "schön".encode("cp1252"))
    write_audio(folder / "utf16.wav", seed=12)
    write_text(folder / "utf16.txt", "hello".encode("utf-16"))
    write_text(folder / "alone.txt", "where is it")
    write_text(folder / "README.txt", "about all this")
    write_text(folder / ".hidden.wav", b"")
    write_text(folder / "._rate8000.wav", b"left by a Mac")
    return folder


def write_json_lines(path: Path, rows: list[Mapping[str, object]]) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path
