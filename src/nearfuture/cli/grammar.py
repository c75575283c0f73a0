"""A grammar as the options of a command, and the commands that are spoken in a recording."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nearfuture.decoding import GrammarSearch
    from nearfuture.phrases import Phrases, SpokenCommand
    from nearfuture.runtime import Model, TranscribedUtterance


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class GrammarOptions:
    """Sentences that may be said, and how sure the model must be of one.

    Attributes:
        grammar: Files of phrases; whatever else is said is not understood. Several files of
            template sentences are put together.
        threshold: The confidence from which on a sentence is understood, from 0 to 1; lower, and
            more is understood that was not said; 0.8 by default.
    """

    grammar: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = ()
    threshold: Annotated[float | None, Parameter(show_default=False)] = None

    def commands(self, model: "Model") -> "GrammarTranscriber | None":
        """Compile the grammar for a model; None where there is none."""
        from nearfuture.error import NearfutureError

        if not self.grammar:
            if self.threshold is not None:
                raise NearfutureError(
                    "`threshold` is that of a `grammar`, and there is none",
                    code="conflict",
                    parameter="threshold",
                )
            return None
        from nearfuture.phrases import Phrases
        from nearfuture.runtime import grammar_search

        phrases = Phrases.load(*self.grammar)
        search = grammar_search(model, phrases.automaton, threshold=self.threshold)
        return GrammarTranscriber(model, phrases, search)


@dataclass
class GrammarTranscriber:
    """The commands of a recording, in the shape of a model's utterances.

    Attributes:
        spoken: What was said so far in the recording, understood or not.
    """

    model: "Model"
    phrases: "Phrases"
    search: "GrammarSearch"
    spoken: list["SpokenCommand"] = field(default_factory=list)

    def utterances(
        self, blocks: Iterable["ArrayLike"], rate: int
    ) -> Iterator["TranscribedUtterance"]:
        """Yield what is understood of a recording, as it ends."""
        from nearfuture.phrases import SpokenCommand
        from nearfuture.runtime import TranscribedUtterance, search_blocks

        self.spoken = []
        for result in search_blocks(self.model, blocks, self.search, rate):
            self.spoken.append(SpokenCommand.of(result, self.phrases))
            if result.understood:
                yield TranscribedUtterance(result.text, result.words)
