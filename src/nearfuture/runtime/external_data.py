"""Which files an ONNX graph would read besides itself, found without running anything of it.

An ONNX file is a protocol buffer: a message is a row of fields, each a key (number and wire type)
and a payload. Only the path from the model down to its tensors is followed; everything else is
skipped. Check an untrusted graph for this before loading it.
"""

from __future__ import annotations

from collections.abc import Iterator

from nearfuture.error import NearfutureError

# The fields of onnx.proto that lead to a tensor's external data, by the message that holds them.
_BELOW: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_KEY, _VALUE = 1, 2


def external_locations(model: bytes) -> set[str]:
    r"""Return the paths, as the graph writes them, of all files that hold weights for it.

    Args:
        model: the bytes of an ONNX file.

    Raises:
        NearfutureError: if the bytes are no protocol buffer.

    >>> entry = b"\x0a\x08location\x12\x0bweights.bin"
    >>> def field(number, payload):
    ...     return bytes([number << 3 | 2, len(payload)]) + payload
    >>> external_locations(field(7, field(5, field(13, entry))))
    {'weights.bin'}
    """
    locations: set[str] = set()
    waiting: list[tuple[str, memoryview]] = [("model", memoryview(model))]
    while waiting:
        kind, message = waiting.pop()
        if kind == "entry":
            fields = list(_fields(message))
            if any(number == _KEY and bytes(text) == b"location" for number, text in fields):
                values = [bytes(text) for number, text in fields if number == _VALUE]
                locations.update(value.decode("utf-8", "replace") for value in values)
            continue
        below = _BELOW[kind]
        waiting += [(below[n], payload) for n, payload in _fields(message) if n in below]
    return locations


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the fields of a message that have a length: number and payload."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            _, at = _varint(message, at)
            continue
        if wire == 2:
            size, at = _varint(message, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise NearfutureError("the graph is damaged: it is no ONNX file", code="damaged")
        if at + size > len(message):
            raise NearfutureError("the graph is damaged: it breaks off", code="damaged")
        if wire == 2:
            yield number, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise NearfutureError(
        "the graph is damaged: it is no ONNX file, or it breaks off", code="damaged"
    )
