"""Random access in pieces: however a file is searched, it is read about once."""

import io

import pytest

from nearfuture.audio.window import Bytes


class Counting(io.BytesIO):
    """How many bytes were read."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.count += len(data)
        return data


@pytest.mark.parametrize("mark", [b"\xff", b"\xff\xfe", b"fLaC\0\0\0\x22"])
def test_looking_for_marks_reads_a_file_once(mark: bytes) -> None:
    content = b"abc" * 300 + mark * 200_000
    file = Counting(content)
    data, count, at = Bytes(file), 0, 0
    while (at := data.find(mark, at)) >= 0:
        count += 1
        at += len(mark)
        assert data.at(at + 2000, 4) == content[at + 2000 : at + 2004]  # as for a frame's end
        assert file.count < 3 * len(content)
    assert count == 200_000


def test_a_mark_across_two_pieces_is_found() -> None:
    for place in range((1 << 18) - 5, (1 << 18) + 5):
        data = Bytes(io.BytesIO(bytes(place) + b"mark" + bytes(1 << 19)))
        assert data.find(b"mark", 0) == place
        assert data.find(b"mark", place + 1) == -1
