"""From log-probabilities to text: CTC decoding whose state is a value, and word times."""

from nearfuture.decoding.greedy import Greedy, GreedyState, Token
from nearfuture.decoding.word import Word, text, words

__all__ = ["Greedy", "GreedyState", "Token", "Word", "text", "words"]
