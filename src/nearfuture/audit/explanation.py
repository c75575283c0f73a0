"""What each kind of finding means, and what to do about it, in words for everybody."""

from __future__ import annotations

from dataclasses import dataclass

from nearfuture.audit.report import Kind


@dataclass(frozen=True)
class Explanation:
    """A kind of finding, explained.

    Attributes:
        title: what happens, as the rest of a sentence that begins with "the model".
        meaning: why that matters to whoever uses it.
        remedy: what usually mends it.
    """

    title: str
    meaning: str
    remedy: str


EXPLANATIONS: dict[Kind, Explanation] = {
    "future": Explanation(
        "looks into the future",
        "An output changed when only a later input was changed. Live, that input has not arrived "
        "yet: the output has to wait for it, or it will not be the one that was measured offline.",
        "If it is meant, allow it and pay the wait. If not, make the place causal: pad a "
        "convolution on its left only, mask attention above the diagonal, run a recurrent layer "
        "forwards only, or look ahead a fixed number of frames.",
    ),
    "normalisation": Explanation(
        "normalises over time",
        "A mean or a variance is taken over the whole sequence, so that every output depends on "
        "every input, the last one included.",
        "Normalise over the features of one frame (LayerNorm, RMSNorm), with statistics that are "
        "fixed after training (BatchNorm in eval mode), or over the past alone.",
    ),
    "length": Explanation(
        "depends on the total length",
        "An output changed when only the length of the sequence was changed, and nothing that the "
        "output looks at. Live, nobody knows yet how long a sequence will be.",
        "Do not divide by the length, interpolate over it or count positions from the end: count "
        "from the start.",
    ),
    "padding": Explanation(
        "hears the padding",
        "What stands behind the end of a shorter sequence changed its outputs. The same sequence "
        "then gives other results in another batch.",
        "Set everything behind a sequence's end to zero before each layer that mixes frames, leave "
        "it out of attention and statistics, start a backward pass at each sequence's own end, and "
        "tell the model the lengths.",
    ),
    "batch": Explanation(
        "mixes the rows of a batch",
        "The outputs of one sequence changed with another sequence of the same batch. A result "
        "then depends on who else is being served.",
        "Look for what runs over the batch axis: BatchNorm in train mode, a mean or a maximum over "
        "the wrong axis, a reshape that mixes rows.",
    ),
    "state": Explanation(
        "remembers earlier calls",
        "The same input gave another output after other calls had been made: something is kept "
        "from call to call. One stream then hears another.",
        "Take the state as an argument and return the new one, or reset it where a sequence "
        "begins.",
    ),
    "nondeterminism": Explanation(
        "does not repeat itself",
        "The same input gave different outputs. Whatever is smaller than this noise cannot be seen "
        "by the audit, nor by any other test.",
        "Call eval() to switch dropout off, and draw random numbers from a generator with a seed.",
    ),
    "streaming": Explanation(
        "streams differently",
        "Fed piece by piece, the model gave other outputs than fed all at once: what was measured "
        "offline is not what will run.",
        "Look where the first difference is. At a cut, a window has lost its left context; at the "
        "start, filling was heard as input; at the end, the tail was not flushed.",
    ),
    "latency": Explanation(
        "needs longer than it declares",
        "The last input that an output needs arrives later than the latency that the bundle "
        "promises, however fast the computer is. Whoever counts on the promise gets no answer in "
        "time.",
        "Declare what was measured; or shorten what waits, the lookahead first, then the window "
        "and whatever is in front of it.",
    ),
    "label": Explanation(
        "sees the answer",
        "An output depends on the label that it is to predict. Training then looks perfect, and "
        "nothing has been learnt.",
        "Give an output only the labels before its own (shift them by one), mask the rest, and "
        "look for features that were computed from the labels.",
    ),
}
