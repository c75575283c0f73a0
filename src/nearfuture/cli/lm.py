"""`nearfuture lm`: language models of words, from texts."""

import sys
from pathlib import Path

from cyclopts import App
from rich.progress import Progress

from nearfuture.cli.console import Console
from nearfuture.error import NearfutureError

lm = App(name="lm", help="Language models of words, from texts.")


@lm.command
def build(texts: list[Path], /, *, out: Path, order: int = 3) -> None:
    """Count the words of texts, and write an n-gram model as an ARPA file.

    Every line is a sentence; it is normalised as transcripts are. The smoothing is that of Witten
    and Bell, which needs no tuning and no large text.

    Args:
        texts: Text files, in UTF-8, or - for standard input.
        out: The ARPA file, such as words.arpa.
        order: The longest n-gram, in words, from 1 to 9.
    """
    from nearfuture.decoding import NGramCounts
    from nearfuture.text import normalise, plural

    counts = NGramCounts(order=order)
    for path in texts:
        try:
            size = 0 if str(path) == "-" else path.stat().st_size
            with (
                Progress(console=Console(stderr=True), transient=True) as progress,
                sys.stdin if str(path) == "-" else open(path, encoding="utf-8") as lines,
            ):
                task = progress.add_task(str(path), total=size or None)
                for line in lines:
                    progress.advance(task, len(line.encode()))
                    if words := normalise(line).split():
                        counts.add(words)
        except UnicodeDecodeError as error:
            raise NearfutureError(
                f"{path} is no text in UTF-8: {error}", code="damaged", parameter="texts"
            ) from error
        except FileNotFoundError as error:
            raise NearfutureError(
                f"there is no file {path}", code="not_found", parameter="texts"
            ) from error
    if not counts.sentences:
        raise NearfutureError("the texts have no words: no model was written", parameter="texts")
    with open(out, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in counts.arpa())
    print(f"{out}: {plural(counts.sentences, 'sentence')}, n-grams of up to {order} words")
