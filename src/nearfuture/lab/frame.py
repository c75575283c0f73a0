"""The HTML around a figure, in a language: question, figure, what was seen, the code behind it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from nearfuture import __version__
from nearfuture.lab.page import Page
from nearfuture.lab.site import FRONT, Site
from nearfuture.lab.texts import LANGUAGES, Language, Texts, as_html, texts

_SERVED = Site()


def render(page: Page, story: Sequence[Page], language: Language, site: Site = _SERVED) -> str:
    """Return a page as HTML.

    Args:
        page: what is shown.
        story: all pages, in their order.
        language: of the texts.
        site: where the pages, their files and their answers are.
    """
    content = texts(language)
    common, own = content["lab"], content["pages"][page.name]
    is_front = page.name == FRONT
    compose = _front if is_front else _page
    body = compose(page, story, language, site)
    name = common["brand"] if is_front else f"{own['title']} · {common['brand']}"
    return f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{site.head}<meta name="color-scheme" content="light dark">
<meta name="description" content="{escape(own["description"])}">
<title>{escape(name)}</title>
<script src="{site.assets}/js/theme.js"></script>
<link rel="icon" href="{site.assets}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{site.assets}/css/lab.css">
<link rel="stylesheet" href="{site.assets}/css/figures.css">
<script type="module" src="{site.assets}/js/main.js"></script>
</head>
<body class="{"front" if is_front else "page"}">
<a class="skip" href="#figure">{escape(common["skip"])}</a>
{_header(page, story, language, site)}
<main>
{body}
</main>
{_footer(site.footer(page, content))}
<div class="card" id="term" popover role="dialog" aria-live="polite"></div>
{_glossary(content)}
<script type="application/json" id="data">{_data(page, language, site)}</script>
</body>
</html>
"""


def _header(page: Page, story: Sequence[Page], language: Language, site: Site) -> str:
    content = texts(language)
    common = content["lab"]
    steps = "".join(
        f'<li><a href="{site.page(each.name, language)}"{_current(each is page)} '
        f'title="{escape(content["pages"][each.name]["title"])}">'
        f'<span class="number">{number}</span>'
        f'<span class="short">{escape(content["pages"][each.name]["short"])}</span></a></li>'
        for number, each in enumerate(story, 1)
    )
    others = "".join(
        f'<a class="quiet" data-language="{each}" hreflang="{each}" lang="{each}" '
        f'href="{site.translation(page, each)}">{escape(texts(each)["lab"]["language"])}</a>'
        for each in LANGUAGES
        if each != language
    )
    front = site.page(FRONT, language)
    return f"""<header class="top">
<a class="brand" href="{front}">{_MARK}<span>{escape(common["brand"])}</span></a>
<nav class="story" aria-label="{escape(common["story"])}"><ol>{steps}</ol></nav>
<div class="tools">
<button type="button" class="quiet" id="open-glossary">{escape(common["glossary"])}</button>
{others}
<button type="button" class="quiet icon" id="theme" aria-label="{escape(common["theme"])}"
 title="{escape(common["theme"])}"><span aria-hidden="true"></span></button>
</div>
</header>"""


def _current(here: bool) -> str:
    return ' aria-current="page"' if here else ""


def _front(page: Page, story: Sequence[Page], language: Language, site: Site) -> str:
    content = texts(language)
    own = content["pages"][page.name]
    entries = "".join(
        f'<li><a href="{site.page(each.name, language)}"><span class="number">{number}</span>'
        f"<span><strong>{escape(content['pages'][each.name]['title'])}</strong>"
        f"<span>{escape(content['pages'][each.name]['description'])}</span></span></a></li>"
        for number, each in enumerate(story, 1)
    )
    begin = site.page(story[0].name, language)
    return f"""<section class="hero">
<div class="say">
<h1>{as_html(own["title"])}</h1>
{_paragraphs(own["lead"])}
<p class="begin"><a class="button" href="{begin}">{escape(own["begin"])}</a></p>
</div>
<div id="figure" class="figure" tabindex="-1"><div id="drawing" class="drawing"></div>
{site.note(page, content)}</div>
</section>
<section class="contents">
<h2>{escape(own["contents"])}</h2>
<ol>{entries}</ol>
</section>"""


def _page(page: Page, story: Sequence[Page], language: Language, site: Site) -> str:
    content = texts(language)
    common, own = content["lab"], content["pages"][page.name]
    number = story.index(page) + 1
    correction = (
        f'<aside class="correction"><h2>{escape(common["correction"])}</h2>'
        f"{_paragraphs(own['correction'])}</aside>"
        if "correction" in own
        else ""
    )
    return f"""<article>
<p class="kicker">{number} / {len(story)}</p>
<h1>{as_html(own["title"])}</h1>
<div class="lead">{_paragraphs(own["lead"])}</div>
<section id="figure" class="figure" aria-label="{escape(common["figure"])}" tabindex="-1">
<div id="controls" class="controls"></div>
<div id="drawing" class="drawing"></div>
<p id="trouble" class="trouble" role="alert" hidden></p>
{site.note(page, content)}</section>
<section id="seen" class="seen" aria-live="polite" hidden>
<h2>{escape(common["seen"])}</h2>
{_paragraphs(own["seen"])}
</section>
{correction}
<section class="behind">
<h2>{escape(common["behind"])}</h2>
{_paragraphs(own["behind"])}
{_sources(page, common, site)}
{_code(page, common)}
</section>
{_neighbours(page, story, language, site)}
</article>"""


def _sources(page: Page, common: Texts, site: Site) -> str:
    links = "".join(
        f'<li><a href="{site.source(each)}" target="_blank" rel="noopener">'
        f"nearfuture/{each}</a></li>"
        for each in page.behind
    )
    if not links:
        return ""
    return (
        f'<p class="sources-title">{escape(common["sources"])}</p><ul class="sources">{links}</ul>'
    )


def _code(page: Page, common: Texts) -> str:
    code = page.code()
    if not code:
        return ""
    return f"""<div class="code">
<div class="code-bar"><span>Python</span>
<button type="button" class="quiet" id="copy">{escape(common["copy"])}</button></div>
<pre tabindex="0"><code id="code">{escape(code)}</code></pre>
</div>"""


def _neighbours(page: Page, story: Sequence[Page], language: Language, site: Site) -> str:
    content = texts(language)
    common, at = content["lab"], story.index(page)
    links = []
    for word, index in (("previous", at - 1), ("next", at + 1)):
        if 0 <= index < len(story):
            name = story[index].name
            title = escape(content["pages"][name]["title"])
            links.append(
                f'<a class="{word}" rel="{"prev" if word == "previous" else word}" '
                f'href="{site.page(name, language)}"><span>{escape(common[word])}</span>{title}</a>'
            )
    label = escape(common["neighbours"])
    return f'<nav class="neighbours" aria-label="{label}">{"".join(links)}</nav>'


def _footer(text: str) -> str:
    said = as_html(text.replace("{version}", __version__))
    return f"<footer><p>{said}</p></footer>"


def _glossary(content: Texts) -> str:
    common = content["lab"]
    entries = "".join(
        f'<div><dt id="term-{key}">{escape(entry["term"])}</dt>'
        f"<dd>{as_html(entry['text'])}</dd></div>"
        for key, entry in content["glossary"].items()
    )
    return f"""<dialog id="glossary" aria-labelledby="glossary-title">
<div class="dialog-bar"><h2 id="glossary-title">{escape(common["glossary"])}</h2>
<button type="button" class="quiet" id="close-glossary">{escape(common["close"])}</button></div>
<dl>{entries}</dl>
</dialog>"""


def _data(page: Page, language: Language, site: Site) -> str:
    """What the modules in the browser read; "<" would end the element that it stands in."""
    content = texts(language)
    data: dict[str, Any] = {
        "page": page.name,
        "language": language,
        "texts": {**content["lab"], **content["pages"][page.name].get("figure", {})},
        **site.data(page),
    }
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _paragraphs(paragraphs: Sequence[str]) -> str:
    return "\n".join(f"<p>{as_html(each)}</p>" for each in paragraphs)


_MARK = (
    '<svg class="mark" viewBox="0 0 20 20" aria-hidden="true">'
    '<path class="past" d="M2 2v16h16z"/><path class="future" d="M5 2l13 13v-7l-6-6z"/></svg>'
)
"""A lower triangle and a band above it: what a row convolution sees."""
