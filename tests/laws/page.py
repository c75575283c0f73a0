"""What `docs/laws.md` shows is what runs: its code, the message of a failure, the table
of wrong layers.

`python -m tests.laws.page` prints the page with message and table as they are now; with `--write`
it puts them there.
"""

import inspect
import re
import sys
from pathlib import Path

import torch

from nearfuture import laws
from tests.laws import wrong_layers

PAGE = Path(__file__).parents[2] / "docs" / "laws.md"

MESSAGE = re.compile(r"(?<=<!-- message -->\n```\n).*?(?=\n```)", re.DOTALL)
TABLE = re.compile(r"(?<=<!-- begin: table -->\n).*?(?=\n<!-- end: table -->)", re.DOTALL)
RENEW = "look at the difference, then renew the page: python -m tests.laws.page --write"
FORGOTTEN = ("state = torch.where((t < lengths)[:, None], moved, state)", "state = moved")


def code() -> str:
    """The Python of the page, in order."""
    text = PAGE.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def message() -> str:
    """What `check` says of the layer of the page with one line wrong."""
    right, wrong = FORGOTTEN
    assert code().count(right) == 1
    names: dict[str, object] = {"__name__": "page"}
    exec(code().replace(right, wrong), names)
    try:
        laws.check(lambda: names["Decay"](3), laws.ALL[:2])
    except laws.LawBroken as broken:
        return str(broken)
    raise AssertionError("the wrong layer of the page obeys the laws")


HEAD = (
    "| wrong layer | what is wrong | caught by | what the first law says |",
    "|---|---|---|---|",
)


def row(name: str) -> str:
    """A wrong layer → law → message, as Markdown."""
    what = (inspect.getdoc(wrong_layers.WRONG_LAYERS[name][0]) or "").rstrip(".")
    caught = wrong_layers.verdicts(name)
    numbers = ", ".join(broken.law.split(" (")[0] for broken in caught.values())
    said = next(iter(caught.values())).where.replace("|", "\\|")
    return f"| `{name}` | {what} | {numbers} | {said} |"


def rows() -> dict[str, str]:
    """The rows of the table as they are written, by the name of the layer."""
    found = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found
    head, rule, *lines = found.group().split("\n")
    assert (head, rule) == HEAD
    return {line.split("`")[1]: line for line in lines}


def renewed() -> str:
    """The page with message and table as they are now."""
    text = PAGE.read_text(encoding="utf-8")
    text = MESSAGE.sub(lambda _: message(), text)
    return TABLE.sub(lambda _: "\n".join([*HEAD, *map(row, wrong_layers.WRONG_LAYERS)]), text)


def masked(text: str) -> str:
    """Without the digits of floating values, which depend on the CPU."""
    return re.sub(r"-?\d+(\.\d+(e[+-]\d+)?|e[+-]\d+)", "#", text)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(renewed(), encoding="utf-8")
    else:
        print(renewed())
