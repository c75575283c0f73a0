"""How soon the lab is there, and how soon it answers when any of its controls is moved.

A start is the time from the new process to a page whose figure is drawn, in a browser that runs
already; each has a process of its own. Every number, choice and switch in the signatures of the
endpoints is then set to each of its values (twelve at most, spread over its range), the others as
they begin, over HTTP, twice, as a slider that goes back does. Long work (lines of progress), sounds
and what a body is sent to are no answers of a slider and are left out. `idle` is a request that
computes nothing, measured between the others in the same run: what of the times is the machine's.
`CPU` is what the lab's process computed for an answer, on average; other processes do not lengthen
it as they do the times.

    python benchmarks/lab.py [--starts 5] [--page NAME]
"""

import argparse
import http.client
import inspect
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
from _report import emit
from rich.progress import track
from rich.table import Table

from nearfuture.lab import PAGES
from nearfuture.lab.endpoint import BODY, parameters
from nearfuture.lab.page import Media, Page

VALUES = 12
ROUNDS = 2
LIMIT_MS = 100.0


@contextmanager
def lab() -> Iterator[tuple[str, float, int]]:
    """A lab in a process of its own: its address, when it was started, and the process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "nearfuture", "lab", "--port", str(port), "--no-browser"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()  # the address, once it answers
    try:
        yield f"http://127.0.0.1:{port}", began, process.pid
    finally:
        process.terminate()
        process.wait(10)


def starts(count: int) -> dict[str, list[float]] | None:
    """Seconds until the lab answers, and until a figure is drawn; None without chromium."""
    import shutil

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        return None
    took: dict[str, list[float]] = {"answers": [], "usable": [], "usable, CPU": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        browser.new_page().goto("about:blank")
        for _ in range(count):
            page = browser.new_page()
            with lab() as (address, began, pid):
                took["answers"].append(time.perf_counter() - began)
                page.goto(f"{address}/?lang=en")
                page.wait_for_selector("html[data-ready] .shapes svg")
                took["usable"].append(time.perf_counter() - began)
                took["usable, CPU"].append(cpu_s(pid))
            page.close()
        browser.close()
    return took


def cpu_s(pid: int) -> float:
    """The processor time of a process so far, in seconds; NaN where the system has no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_slider(function: Callable[..., object]) -> bool:
    """Whether an endpoint answers a control: neither line by line, nor a sound, nor to a body."""
    hint = inspect.get_annotations(function, eval_str=True).get("return")
    long = inspect.isgeneratorfunction(function) or hint is Media
    return not long and BODY not in inspect.signature(function).parameters


def values(parameter: dict[str, Any]) -> list[Any]:
    """The values that a control can have, twelve at most."""
    if "choices" in parameter:
        return list(parameter["choices"])
    if isinstance(parameter["default"], bool):
        return [False, True]
    if "min" not in parameter:
        return [parameter["default"]]  # a text
    least, most, step = parameter["min"], parameter["max"], parameter["step"]
    count = round((most - least) / step) + 1
    places = np.unique(np.linspace(0, count - 1, min(count, VALUES)).round().astype(int))
    return [type(step)(least + place * step) for place in places.tolist()]


def queries(page: Page) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every endpoint and parameter of a page, with what is asked."""
    for endpoint, function in page.endpoints.items():
        if not is_slider(function):
            continue
        described = parameters(function)
        if not described:
            yield endpoint, "", {}
        for name, parameter in described.items():
            for value in values(parameter):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                yield endpoint, name, {name: text}


def timed(connection: http.client.HTTPConnection, path: str) -> float:
    began = time.perf_counter()
    connection.request("GET", path, headers={"Host": f"127.0.0.1:{connection.port}"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {content[:200]!r}")
    return 1000 * (time.perf_counter() - began)


Control = tuple[str, str, str]


def sliders(
    address: str, pid: int, pages: list[Page]
) -> tuple[dict[Control, list[float]], dict[Control, float], list[float]]:
    """Milliseconds of each answer by page, endpoint and parameter, CPU s; and of idle requests."""
    target = urlsplit(address)
    assert target.hostname is not None
    connection = http.client.HTTPConnection(target.hostname, target.port)
    found: dict[Control, list[float]] = {}
    computed: dict[Control, float] = {}
    timed(connection, "/api/front/shapes")  # as a browser does first
    idle: list[float] = []
    for page in track(pages, description="controls"):
        for _ in range(ROUNDS):
            for endpoint, name, query in queries(page):
                path = f"/api/{page.name}/{endpoint}?{urlencode(query)}"
                control, before = (page.name, endpoint, name), cpu_s(pid)
                found.setdefault(control, []).append(timed(connection, path))
                computed[control] = computed.get(control, 0.0) + cpu_s(pid) - before
                idle.append(timed(connection, "/assets/icon.svg"))
    return found, computed, idle


def p95(times: list[float]) -> float:
    return float(np.percentile(times, 95))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--page", choices=[page.name for page in PAGES], action="append")
    options = parser.parse_args()
    pages = [page for page in PAGES if options.page is None or page.name in options.page]
    begun = starts(options.starts)
    with lab() as (address, _, pid):
        found, computed, idle = sliders(address, pid, pages)
    columns = ("page", "answer", "control", "n", "p50 ms", "p95 ms", "CPU ms")
    table = Table(*columns, title="the lab")
    slow = []
    for (page, endpoint, name), times in found.items():
        over = p95(times) >= LIMIT_MS
        slow += [f"{page}/{endpoint} {name}"] if over else []
        row = [page, endpoint, name, str(len(times)), f"{np.median(times):.1f}"]
        cpu_ms = 1000 * computed[page, endpoint, name] / len(times)
        table.add_row(*row, f"{p95(times):.1f}{' !' if over else ''}", f"{cpu_ms:.0f}")
    every = [each for times in found.values() for each in times]
    table.add_row("all", "", "", str(len(every)), f"{np.median(every):.1f}", f"{p95(every):.1f}")
    table.add_row("idle", "", "", str(len(idle)), f"{np.median(idle):.1f}", f"{p95(idle):.1f}")
    results: dict[str, Any] = {
        "answer_p50_ms": float(np.median(every)),
        "answer_p95_ms": p95(every),
        "answer_cpu_ms": 1000 * sum(computed.values()) / len(every),
        "idle_p50_ms": float(np.median(idle)),
        "idle_p95_ms": p95(idle),
        "controls": len(found),
        "controls_over_100_ms": slow,
    }
    for name, seconds in (begun or {}).items():
        table.add_row("start", name, "", str(len(seconds)), f"{1000 * np.median(seconds):.0f}", "")
        results[f"start_{name.replace(', ', '_').lower()}_s"] = float(np.median(seconds))
    emit(table, results)


if __name__ == "__main__":
    main()
