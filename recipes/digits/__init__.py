"""Connected digits: what the bundled models were trained on.

    python -m recipes.digits train --out runs/digits
    python -m recipes.digits evaluate --model runs/digits/streaming/bundle

A recipe brings its own batches to a training. `strings` makes them, `voices` adds synthetic
speakers, `task` puts both together, and `__main__` is the command line.
"""

from recipes.digits.strings import HELD_OUT, WORDS, ConnectedDigits, DigitRecordings, symbols
from recipes.digits.task import test_strings, training_data
from recipes.digits.voices import corpus_strings, synthesised_strings

__all__ = [
    "HELD_OUT",
    "WORDS",
    "ConnectedDigits",
    "DigitRecordings",
    "corpus_strings",
    "symbols",
    "synthesised_strings",
    "test_strings",
    "training_data",
]
