"""The lab's server: who may ask, what a browser may load, and how an endpoint refuses."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from nearfuture.error import NearfutureError
from nearfuture.lab import PAGES, app, create_app
from nearfuture.lab.app import _Lab
from nearfuture.lab.endpoint import Between, Text, call, parameters
from nearfuture.lab.page import ASSETS, Media, Page
from nearfuture.lab.pages import who_looks_at_whom


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(), base_url="http://127.0.0.1") as client:
        yield client


def test_a_page_comes_in_the_language_of_its_address_or_of_the_browser(client: TestClient) -> None:
    def language(path: str, accept: str) -> str:
        html = client.get(path, headers={"Accept-Language": accept}).text
        return html.split('<html lang="')[1][:2]

    assert language("/who-looks-at-whom?lang=en", "ko") == "en"
    assert language("/who-looks-at-whom", "ko-KR,ko;q=0.9") == "ko"
    assert language("/?lang=xx", "fr") == "en"


def test_the_language_of_the_command_counts_where_the_address_has_none() -> None:
    with TestClient(create_app(language="ko"), base_url="http://127.0.0.1") as client:
        assert '<html lang="ko"' in client.get("/").text
        assert '<html lang="en"' in client.get("/?lang=en").text


@pytest.mark.parametrize("path", ["/", "/assets/js/main.js", "/api/front/shapes", "/nothing"])
def test_every_answer_forbids_what_is_inline_or_from_elsewhere(
    client: TestClient, path: str
) -> None:
    policy = client.get(path).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_a_host_that_is_not_this_machine_is_refused(client: TestClient) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    assert client.get("/", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.get("/", headers={"Host": "localhost:8010"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "site", "mode", "status"),
    [
        ("/api/front/shapes", "cross-site", "no-cors", 403),  # <img src=…> of a foreign page
        ("/api/front/shapes", "same-site", "no-cors", 403),  # of another port of this machine
        ("/api/front/shapes", "cross-site", "navigate", 403),
        ("/api/front/shapes", "same-origin", "cors", 200),
        ("/assets/js/main.js", "cross-site", "no-cors", 403),
        ("/?lang=en", "cross-site", "navigate", 200),  # a link
        ("/?lang=en", "none", "navigate", 200),  # the address bar
    ],
)
def test_a_foreign_page_may_link_to_the_lab_and_compute_nothing(
    client: TestClient, path: str, site: str, mode: str, status: int
) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
    assert client.get(path, headers=headers).status_code == status


def test_few_answers_are_streamed_at_once() -> None:
    """A hundred trainings would each keep a model, and share one thread."""

    def lines() -> Iterator[int]:
        yield from range(3)

    async def main() -> list[list[str]]:
        lab = _Lab([], None)
        streams = [lab._lines(lines()) for _ in range(6)]
        first = [await anext(stream) for stream in streams]
        rest = [[line async for line in stream] for stream in streams]
        again = await anext(lab._lines(lines()))
        return [first, *rest, [again]]

    first, *rest, again = asyncio.run(main())
    assert first[:4] == ["0\n"] * 4
    assert [json.loads(line)["error"]["key"] for line in first[4:]] == ["code-busy"] * 2
    assert rest == [["1\n", "2\n"]] * 4 + [[]] * 2
    assert again == ["0\n"]


def test_few_figures_wait() -> None:
    async def main() -> list[str]:
        lab = _Lab([], None)
        release = asyncio.Event()

        async def wait() -> None:
            async with lab._place():
                await release.wait()

        figures = [asyncio.create_task(wait()) for _ in range(70)]
        await asyncio.sleep(0)
        release.set()
        ends = await asyncio.gather(*figures, return_exceptions=True)
        await wait()
        return [getattr(end, "code", "") for end in ends]

    assert asyncio.run(main()) == [""] * 64 + ["busy"] * 6


def test_few_bodies_are_read_at_once_and_none_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_BODY_S", 0.2)

    async def main() -> tuple[list[str], float]:
        lab = _Lab([], None)

        async def nothing() -> Any:
            await asyncio.sleep(60)

        def request() -> Request:
            return Request({"type": "http", "method": "POST", "headers": []}, nothing)

        began = time.perf_counter()
        bodies = [lab._body(request()) for _ in range(20)]
        errors = await asyncio.gather(*bodies, return_exceptions=True)
        return [getattr(error, "code", "") for error in errors], time.perf_counter() - began

    codes, took_s = asyncio.run(main())
    assert codes == ["idle"] * 8 + ["busy"] * 12
    assert took_s < 10


def test_what_does_not_exist_is_not_found(client: TestClient) -> None:
    for path in ("/none", "/api/front/none", "/api/none/shapes", "/assets/none.js"):
        assert client.get(path).status_code == 404, path


def test_only_the_code_behind_a_figure_is_shown(client: TestClient) -> None:
    assert "def model(" in client.get("/source/audit/run.py").text
    for path in ("lab/app.py", "../pyproject.toml", "..%2f..%2fREADME.md"):
        assert client.get(f"/source/{path}").status_code == 404, path


def test_a_value_out_of_its_limits_is_refused_by_its_name(client: TestClient) -> None:
    answer = client.get("/api/who-looks-at-whom/matrix?tau=7")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "tau"
    assert answer.json()["error"]["code"] == "out_of_range"


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({"n": "x"}, "n"),
        ({"n": "nan"}, "n"),
        ({"n": "9" * 400}, "n"),  # no float is so large
        ({"share": "inf"}, "share"),
        ({"cell": "mlp"}, "cell"),
        ({"on": "1"}, "on"),
        ({"text": "12345"}, "text"),
        ({"other": "1"}, "other"),
        ({"body": "1"}, "body"),
    ],
)
def test_a_wrong_value_is_an_error_of_its_parameter(query: dict[str, str], parameter: str) -> None:
    def endpoint(
        body: bytes = b"",
        n: Annotated[int, Between(0, 9)] = 1,
        share: Annotated[float, Between(0, 1, 0.1)] = 0.5,
        cell: Literal["gru", "rnn"] = "gru",
        on: bool = False,
        text: Annotated[str, Text(4)] = "",
    ) -> object:
        return n, share, cell, on, text, body

    with pytest.raises(NearfutureError) as raised:
        call(endpoint, query)
    assert raised.value.parameter == parameter
    values = {"n": "3", "share": "0.1", "cell": "rnn", "on": "true", "text": "가나다라"}
    assert call(endpoint, values, b"x") == (3, 0.1, "rnn", True, "가나다라", b"x")
    assert list(parameters(endpoint)) == ["n", "share", "cell", "on", "text"]


def test_long_work_comes_line_by_line_and_ends_with_its_error() -> None:
    def counted() -> Iterator[Any]:
        yield {"thread": threading.current_thread().name}
        raise NearfutureError("that is enough", code="conflict")

    def sound() -> Media:
        return Media(b"RIFF", "audio/wav")

    page = Page(name=PAGES[0].name, endpoints={"counted": counted, "sound": sound}, module=__name__)
    with TestClient(create_app(pages=[page]), base_url="http://127.0.0.1") as client:
        first, last = client.get(f"/api/{page.name}/counted").text.splitlines()
        assert first == '{"thread": "figure_0"}'  # in its turn, as any other figure
        assert "that is enough" in last
        answer = client.get(f"/api/{page.name}/sound")
    assert (answer.content, answer.headers["content-type"]) == (b"RIFF", "audio/wav")


def test_nothing_is_computed_for_a_client_that_has_gone() -> None:
    computed: list[int] = []

    def figure() -> int:
        computed.append(1)
        return 1

    page = Page(name=PAGES[0].name, endpoints={"figure": figure}, module=__name__)
    app = create_app(pages=[page])
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/api/{page.name}/figure",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
        "server": ("127.0.0.1", 80),
    }

    def answered(*received: dict[str, Any]) -> int:
        messages, sent = iter(received), []

        async def receive() -> Any:
            return next(messages, {"type": "http.request"})

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(app(scope, receive, send))
        return int(sent[0]["status"])

    request = {"type": "http.request", "body": b"", "more_body": False}
    assert answered(request, {"type": "http.disconnect"}) == 499
    assert computed == []
    assert answered(request) == 200
    assert computed == [1]


def test_a_request_that_is_too_large_is_refused(client: TestClient) -> None:
    assert client.post("/api/front/shapes", content=bytes(9 << 20)).status_code == 413


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs_as_it_is_copied(page: Page, capsys: Any) -> None:
    code = page.code()
    exec(compile(code, page.name, "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed
    for line in printed:
        assert f"# {line}" in code


def test_every_file_behind_a_page_exists() -> None:
    package = ASSETS.parents[1]
    for page in PAGES:
        assert page.behind
        for file in page.behind:
            assert (package / file).is_file(), file


def test_the_matrix_is_that_of_the_facts() -> None:
    found = who_looks_at_whom.matrix("row-convolution", tau=3, layers=1)
    matrix = found["measured"]
    assert all(matrix[t][s] == (s <= t + 3) for t in range(16) for s in range(16))
    assert found["lookahead"] == 3
    assert who_looks_at_whom.matrix("row-convolution", tau=2, layers=3)["lookahead"] == 6
    assert who_looks_at_whom.matrix("bidirectional")["measured"].all()
    assert who_looks_at_whom.matrix("unidirectional", layers=3)["lookahead"] == 0


@pytest.mark.parametrize("family", get_args(who_looks_at_whom.Family))
@pytest.mark.parametrize("layers", [1, 2])
def test_every_family_depends_on_what_it_declares(family: Any, layers: int) -> None:
    found = who_looks_at_whom.matrix(family, layers=layers)
    assert found["agree"]
    ways = found["ways"]
    seen = [[way is not None for way in row] for row in ways]
    assert seen == found["measured"].tolist()


def test_chunks_come_together() -> None:
    found = who_looks_at_whom.matrix("chunked-attention")
    assert found["emitted"] == [4 * (n // 4) for n in range(17)]
    assert found["measured"][5].nonzero()[0].tolist() == list(range(8))
