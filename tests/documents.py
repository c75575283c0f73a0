"""Runs the Python of a document as it stands, and compares what it prints with its comments."""

import contextlib
import io
import re


def expected(block: str) -> list[str]:
    """The comments behind `print`, or on the line below; what follows a result is explanation."""
    comments = re.findall(r"^ *print\(.*?\) *(?:\n#)? *# (.*)$", block, re.MULTILINE)
    return [comment.strip() for comment in comments]


def run_python(text: str, name: str) -> list[str]:
    """Run all Python of a document in one namespace, and check every comment that says a result.

    A line of output belongs to one comment, and they come in the same order.

    Returns:
        The comments that were checked.
    """
    namespace: dict[str, object] = {"__name__": name}
    checked = []
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, name, "exec"), namespace)
        lines = iter(printed.getvalue().splitlines())
        for comment in expected(block):
            found = any(line and comment.startswith(line) for line in lines)
            assert found, (comment, printed.getvalue())
            checked.append(comment)
    return checked
