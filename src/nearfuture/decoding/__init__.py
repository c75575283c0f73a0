"""From log-probabilities to text: CTC decoding whose state is a value, alignment, word times."""

from nearfuture.decoding.alignment import (
    AlignedCharacter,
    AlignedToken,
    AlignedWord,
    Alignment,
    align,
    align_words,
    aligned_words,
)
from nearfuture.decoding.automaton import Automaton
from nearfuture.decoding.beam_search import BeamHypothesis, BeamSearch, BeamState
from nearfuture.decoding.detokenizer import PAUSE_MS, Detokenizer, greedy_text
from nearfuture.decoding.distribution import check_distributions
from nearfuture.decoding.endpoint import Endpoint
from nearfuture.decoding.fusion import LanguageModelFusion
from nearfuture.decoding.grammar import Grammar
from nearfuture.decoding.grammar_search import GrammarResult, GrammarSearch, GrammarState
from nearfuture.decoding.greedy import GreedyDecoder, GreedyState, Token
from nearfuture.decoding.language_model import NGramModel
from nearfuture.decoding.witten_bell import NGramCounts
from nearfuture.decoding.word import Word, join_words

__all__ = [
    "PAUSE_MS",
    "AlignedCharacter",
    "AlignedToken",
    "AlignedWord",
    "Alignment",
    "Automaton",
    "BeamHypothesis",
    "BeamSearch",
    "BeamState",
    "Detokenizer",
    "Endpoint",
    "Grammar",
    "GrammarResult",
    "GrammarSearch",
    "GrammarState",
    "GreedyDecoder",
    "GreedyState",
    "LanguageModelFusion",
    "NGramCounts",
    "NGramModel",
    "Token",
    "Word",
    "align",
    "align_words",
    "aligned_words",
    "check_distributions",
    "greedy_text",
    "join_words",
]
