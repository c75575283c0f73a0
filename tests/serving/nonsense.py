"""What no client should send, from a seed: JSON, bytes and frames of every shape."""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Frame", "messages", "requests"]

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

_SCALARS = (
    *("null", "true", "false", "0", "-0.0", "1", "-1", "3", "8000", "16000", "24000", "192000"),
    *("NaN", "-Infinity", "1e400", "1e-400", "8000.5", "1" + "0" * 400, "9" * 5000, "400", "800"),
    *('""', '"int16"', '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"\u2028é𝄞"', '"digits"'),
    *(
        '"audio/pcm"',
        '"server_vad"',
        '"whisper-1"',
        '"transcription"',
        "[]",
        "{}",
        "[[]]",
        "[1, 2]",
    ),
)
_DEPTHS = (2, 40, 300, 900, 1100, 3000, 60_000)


@dataclass(frozen=True)
class Frame:
    """Bytes for a websocket: `ends` if nobody can go on behind them."""

    data: bytes
    ends: bool = False


def frame(
    code: int, payload: bytes, *, last: bool = True, mask: bytes | None = b"\1\2\3\4", rsv: int = 0
) -> bytes:
    """A frame as clients send them; whatever is asked for."""
    head = bytes([(0x80 if last else 0) | rsv << 4 | code])
    size, masked = len(payload), 0x80 if mask is not None else 0
    if size < 126:
        head += bytes([masked | size])
    elif size < 1 << 16:
        head += bytes([masked | 126]) + struct.pack(">H", size)
    else:
        head += bytes([masked | 127]) + struct.pack(">Q", size)
    if mask is None:
        return head + payload
    key = (mask * (size // 4 + 1))[:size]
    return head + mask + (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)


def value(draw: random.Random, depth: int = 0) -> str:
    """JSON of any shape, as text: repeated keys and what no writer would write, too."""
    kind = draw.random()
    if kind < 0.55 or depth > 3:
        return draw.choice(_SCALARS)
    if kind < 0.62:
        many = draw.choice(_DEPTHS)
        return draw.choice(("[", '{"type":', '{"a":[')) * many + "1" + "]" * draw.choice((many, 0))
    if kind < 0.66:
        return json.dumps("x" * draw.choice((100, 5000, 200_000)))
    inner = [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind < 0.8:
        return f"[{', '.join(inner)}]"
    keys = (
        "type",
        "rate",
        "config",
        "eof",
        "session",
        "audio",
        "input",
        "model",
        "event_id",
        "\\n",
    )
    return "{" + ", ".join(f'"{draw.choice(keys)}": {one}' for one in inner) + "}"


def mutated(draw: random.Random, data: bytes) -> bytes:
    """A few bytes changed, lost, repeated or cut off."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        at = draw.randrange(len(changed) + 1)
        match draw.randrange(4):
            case 0:
                changed[at:at] = draw.randbytes(draw.randrange(1, 4))
            case 1:
                del changed[at : at + draw.randrange(1, 20)]
            case 2:
                changed[at:at] = changed[max(0, at - 9) : at]
            case 3:
                changed[at : at + 1] = bytes([draw.randrange(256)])
    return bytes(changed)


def event(draw: random.Random, fields: dict[str, str]) -> str:
    """An object of these fields, each as it should be, or with another value, twice, or missing."""
    told = []
    for name, usual in fields.items():
        for _ in range(draw.choice((1, 1, 1, 1, 1, 1, 0, 2))):
            told.append((name, usual if draw.random() < 0.7 else value(draw)))
    if draw.random() < 0.15:
        told.append((draw.choice(("x", "type", "event_id", "\\ud800")), value(draw)))
    space = draw.choice(("", " ", "\n\t"))
    return "{" + f",{space}".join(f'"{name}"{space}:{space}{one}' for name, one in told) + "}"


def wav_header(draw: random.Random) -> bytes:
    """A header of a WAV, right or not, whole or not."""
    rate, bits = draw.choice((8000, 16_000, 0, 7, 44_100, 0xFFFFFFFF)), draw.choice((8, 16, 24, 32))
    channels = draw.choice((1, 1, 2, 16, 17, 0, 65535))
    form = struct.pack("<HHIIHH", draw.choice((1, 3, 6, 7, 0xFFFE, 85)), channels, rate, 1, 2, bits)
    chunks = [b"fmt " + struct.pack("<I", draw.choice((16, 16, 18, 40, 3, 0, 1 << 31))) + form]
    for _ in range(draw.randrange(3)):
        chunks.insert(draw.randrange(2), b"LIST" + struct.pack("<I", draw.choice((0, 4, 1 << 30))))
    size = struct.pack("<I", draw.choice((0, 100, 0xFFFFFFFF, 0x7FFFFF00)))
    whole = b"RIFF" + size + b"WAVE" + b"".join(chunks) + b"data" + size
    return whole[: draw.choice((len(whole), draw.randrange(len(whole))))]


def audio(draw: random.Random) -> bytes:
    """Binary of any length and kind."""
    kind = draw.random()
    if kind < 0.5:
        return draw.randbytes(draw.choice((0, 1, 2, 3, 37, 320, 640, 1601, 4000)))
    if kind < 0.7:
        return bytes(draw.choice((640, 3201, 16_000)))
    if kind < 0.85:
        return wav_header(draw) + draw.randbytes(draw.randrange(300))
    if kind < 0.9:
        magic = (b"fLaC", b"OggS", b"ID3\4", b"\0\0\0\x20ftypM4A ", b"\x1aE\xdf\xa3", b"RIFF")
        return draw.choice(magic) + draw.randbytes(draw.randrange(60))
    if kind < 0.97:
        return struct.pack("<4f", *draw.choices((0.1, 1e30, float("nan"), -float("inf")), k=4))
    return draw.randbytes(draw.choice((70_001, 300_000)))


def _of_stream(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.4:
        hello = {"type": '"hello"', "version": "1", "rate": "8000", "encoding": '"int16"'}
        hello |= {"budget_ms": "400", "endpoint": '{"silence_ms": 800}', "model": '"digits"'}
        return event(draw, hello)
    return event(draw, {"type": f'"{draw.choice(("flush", "finish", "ping", "ping", "hello"))}"'})


def _of_vosk(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.4:
        return event(draw, {"config": event(draw, {"sample_rate": "8000", "words": "true"})})
    space = draw.choice(("", " ", "  \n"))
    return event(draw, {draw.choice(("eof", "eof", "reset")): f"{space}1{space}"})


def _of_realtime(draw: random.Random) -> str:
    kind, identity = draw.random(), {"event_id": '"e1"'} if draw.random() < 0.3 else {}
    if kind < 0.35:
        held = base64.b64encode(audio(draw)).decode()
        if draw.random() < 0.1:
            held = mutated(draw, held.encode()).decode("ascii", "replace")
        return event(draw, {"type": '"input_audio_buffer.append"', "audio": json.dumps(held)})
    if kind < 0.55:
        form = {"type": '"audio/pcm"', "rate": "24000"}
        turns = {"type": '"server_vad"', "silence_duration_ms": "500"}
        heard = {
            "format": event(draw, form),
            "turn_detection": draw.choice(("null", event(draw, turns))),
            "transcription": event(draw, {"model": '"digits"'}),
        }
        session = {"type": '"transcription"', "audio": event(draw, {"input": event(draw, heard)})}
        return event(
            draw, {"type": '"session.update"', "session": event(draw, session), **identity}
        )
    if kind < 0.65:
        session = {"input_audio_format": '"g711_ulaw"', "turn_detection": "null"}
        return event(
            draw, {"type": '"transcription_session.update"', "session": event(draw, session)}
        )
    names = ("commit", "commit", "clear", "append")
    return event(draw, {"type": f'"input_audio_buffer.{draw.choice(names)}"', **identity})


_EVENTS: dict[str, Callable[[random.Random], str]] = {
    "stream": _of_stream,
    "vosk": _of_vosk,
    "openai_realtime": _of_realtime,
}
_FIRST = {"stream": '{"type": "hello"}', "vosk": '{"config": {}}', "openai_realtime": "{}"}


def messages(draw: random.Random, protocol: str) -> list[Frame]:
    """One connection's messages: mostly what the protocol knows, with something wrong in it."""
    sent = []
    if draw.random() < 0.75:
        sent.append(Frame(frame(TEXT, _FIRST[protocol].encode())))
    for _ in range(draw.choice((1, 2, 4, 8, 16))):
        sent.append(_message(draw, protocol))
        if sent[-1].ends:
            break
    return sent


def _message(draw: random.Random, protocol: str) -> Frame:
    kind = draw.random()
    if kind < 0.45:
        return Frame(_cut(draw, TEXT, _EVENTS[protocol](draw).encode("utf-8", "surrogatepass")))
    if kind < 0.78:
        return Frame(_cut(draw, BINARY, audio(draw)))
    if kind < 0.83:
        return Frame(frame(TEXT, value(draw).encode("utf-8", "surrogatepass")))
    if kind < 0.87:
        return Frame(frame(TEXT, mutated(draw, _EVENTS[protocol](draw).encode())))
    if kind < 0.89:
        return Frame(frame(TEXT, draw.randbytes(draw.randrange(50))))
    if kind < 0.94:
        return Frame(frame(draw.choice((PING, PONG)), draw.randbytes(draw.choice((0, 4, 125)))))
    return draw.choice(_ENDS)(draw)


def _cut(draw: random.Random, code: int, payload: bytes) -> bytes:
    """A message in one frame or several, with a ping in between."""
    if draw.random() < 0.85:
        return frame(code, payload)
    parts, size = b"", max(1, len(payload) // 3)
    for at in range(0, len(payload), size):
        parts += frame(code if at == 0 else 0, payload[at : at + size], last=False)
    parts += frame(PING, b"between") if draw.random() < 0.5 else b""
    return parts + frame(0 if payload else code, b"")


_ENDS: Sequence[Callable[[random.Random], Frame]] = (
    lambda draw: Frame(
        frame(CLOSE, struct.pack(">H", draw.choice((1000, 1001, 3000, 4999)))), True
    ),
    lambda draw: Frame(frame(CLOSE, struct.pack(">H", draw.choice((0, 999, 1005, 65535)))), True),
    lambda draw: Frame(frame(CLOSE, draw.choice((b"", b"\3", b"\3\xe8\xff\xfe"))), True),
    # Bad UTF-8 with a proper goodbye right behind it.
    lambda draw: Frame(frame(TEXT, b"\xff{}") + frame(CLOSE, b"\3\xe8"), True),
    lambda draw: Frame(frame(TEXT, b"{}") + frame(CLOSE, b"\3\xe8") + frame(BINARY, b"12"), True),
    lambda draw: Frame(frame(draw.choice((3, 7, 11, 15)), b"reserved"), True),
    lambda draw: Frame(frame(BINARY, bytes(64), rsv=draw.choice((1, 2, 4))), True),
    lambda draw: Frame(frame(BINARY, bytes(64), mask=None), True),
    lambda draw: Frame(frame(0, b"goes on with nothing"), True),
    lambda draw: Frame(frame(PING, bytes(126)), True),
    lambda draw: Frame(b"\x82\xff" + struct.pack(">Q", draw.choice((1 << 21, 1 << 62))), True),
    lambda draw: Frame(frame(BINARY, bytes(5000))[: draw.randrange(2, 5000)], True),
    lambda draw: Frame(frame(TEXT, b"{" * 9, last=False) + frame(TEXT, b"{}"), True),
)


def requests(draw: random.Random, flac: bytes) -> tuple[bytes, bool]:
    """One HTTP request, and whether it is whole, so that an answer is due."""
    path = "/v1/audio/transcriptions"
    if draw.random() < 0.15:
        path = draw.choice(
            ("/v1/models", "/v1/models/%00", "/v1/models/%ED%A0%80", "/v1/models/digits", "/", "//")
        )
    boundary = draw.choice(("x",) * 20 + ("----9", "é", "y" * 300))
    charset = draw.choice(("",) * 25 + ("utf-7", "utf-16", "idna", "punycode", "rot13", "nope"))
    form = f"multipart/form-data; boundary={boundary}" + (f"; charset={charset}" if charset else "")
    body = b"".join(
        b"--" + boundary.encode() + b"\r\n" + one + b"\r\n" for one in _fields(draw, flac)
    )
    body += b"--" + boundary.encode() + b"--\r\n"
    kind = draw.random()
    if kind < 0.2:
        body = mutated(draw, body)
    elif kind < 0.25:
        body = value(draw).encode("utf-8", "surrogatepass")
        form = draw.choice(("application/json", "text/plain", form, "multipart/form-data", ""))
    elif kind < 0.3:
        body = draw.randbytes(draw.randrange(3000))
        form = draw.choice((form, "application/x-www-form-urlencoded", "multipart/form-data"))
    method = draw.choice(("POST",) * 60 + ("GET", "PUT", "HEAD", "OPTIONS", "BREW"))
    length = str(len(body))
    whole = draw.random() < 0.9
    if not whole:
        length = draw.choice((str(len(body) + 500), "-1", "9" * 30, "1e3", str(1 << 40), "0x10"))
    chunked = draw.random() < 0.1
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Type: {form}\r\n"
    if chunked:
        head += "Transfer-Encoding: chunked\r\n\r\n"
        parts = [body[:100], body[100:]]
        body = b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts if part)
        body += b"0\r\n\r\n" if whole else draw.choice((b"zz\r\n", b"ffffffffff\r\n", b"5\r\n12"))
    else:
        head += f"Content-Length: {length}\r\n\r\n"
    return head.encode() + body, whole


def _fields(draw: random.Random, flac: bytes) -> list[bytes]:
    """Parts of a form: a recording and what belongs to it, some of it wrong."""
    fields = [_field("file", _recording(draw, flac), "a.flac"), _field("model", b"digits")]
    if draw.random() < 0.5:
        kinds = (b"json", b"text", b"srt", b"vtt", b"verbose_json", b"diarized_json", b"\xff", b"")
        fields.append(_field("response_format", draw.choice(kinds)))
    if draw.random() < 0.3:
        fields.append(_field("stream", draw.choice((b"true", b"1", b"maybe"))))
    for name in ("language", "temperature", "timestamp_granularities[]", "model", "prompt", "\x7f"):
        if draw.random() < 0.12:
            odd = (b"word", b"0.5", b"nan", b"+2AA-", b"\xed\xa0\x80", b"\0", b"en", b"x" * 9000)
            fields.append(_field(name, draw.choice(odd)))
    if draw.random() < 0.1:
        fields.append(_field("file", flac[:50], draw.choice(("b", None))))
    if draw.random() < 0.02:
        fields += [_field(f"f{n}", b"1") for n in range(120)]
    draw.shuffle(fields)
    return fields[draw.choice((0, 0, 0, 0, 1)) :]


def _field(name: str, content: bytes, filename: str | None = None) -> bytes:
    head = f'Content-Disposition: form-data; name="{name}"'
    if filename is not None:
        head += f'; filename="{filename}"'
    return head.encode() + b"\r\n\r\n" + content


def _recording(draw: random.Random, flac: bytes) -> bytes:
    kind = draw.random()
    if kind < 0.3:
        return mutated(draw, flac)
    if kind < 0.4:
        return flac[: draw.randrange(len(flac))]
    if kind < 0.7:
        return wav_header(draw) + draw.randbytes(draw.randrange(4000))
    if kind < 0.8:
        return audio(draw)
    return flac
