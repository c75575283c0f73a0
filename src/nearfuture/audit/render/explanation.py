"""What each kind of finding means, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from nearfuture.audit.report import Kind


@dataclass(frozen=True)
class Explanation:
    """The explanation of a kind of finding.

    Attributes:
        title: what happens, as the rest of a sentence that begins with "it".
        meaning: why that matters to a user of the model.
        remedy: what usually fixes it.
    """

    title: str
    meaning: str
    remedy: str


EXPLANATIONS: dict[Kind, Explanation] = {
    "future": Explanation(
        "depends on the future",
        "An output changed when only a later input was changed. In a live stream that input has "
        "not arrived yet: the output has to wait for it, or differs from the offline output.",
        "If it is intended, allow it and accept the latency. If not, make the operation causal: "
        "pad a convolution on its left only, mask attention above the diagonal, run a recurrent "
        "layer forward only, or look ahead a fixed number of frames.",
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
        "output depends on. In a live stream the total length is not known yet.",
        "Do not divide by the length, interpolate over it or count positions from the end: count "
        "from the start.",
    ),
    "padding": Explanation(
        "depends on the padding",
        "What follows the end of a shorter sequence changed its outputs. The same sequence then "
        "gives other results in another batch.",
        "Set everything after a sequence's end to zero before each layer that mixes frames, "
        "exclude it from attention and statistics, start a backward pass at each sequence's own "
        "end, and pass the lengths to the model.",
    ),
    "batch": Explanation(
        "mixes the rows of a batch",
        "The outputs of one sequence changed with another sequence of the same batch. A result "
        "then depends on the other users of a server.",
        "Look for operations over the batch axis: BatchNorm in train mode, a mean or a maximum "
        "over the wrong axis, a reshape that mixes rows.",
    ),
    "state": Explanation(
        "keeps state between calls",
        "The same input gave another output after other calls: the model keeps a state from call "
        "to call, so that one stream affects another.",
        "Take the state as an argument and return the new one, or reset it where a sequence "
        "begins.",
    ),
    "nondeterminism": Explanation(
        "is not deterministic",
        "The same input gave different outputs. No test can detect an influence that is smaller "
        "than this noise.",
        "Call eval() to switch dropout off, and draw random numbers from a generator with a seed.",
    ),
    "streaming": Explanation(
        "streams differently from one call",
        "In chunks, the model gave other outputs than in one call: what was measured offline is "
        "not what will run.",
        "Look where the first difference is. At a cut, a window has lost its left context; at the "
        "start, padding was used as input; at the end, the tail was not flushed.",
    ),
    "latency": Explanation(
        "needs longer than it declares",
        "The last input that an output needs arrives later than the latency that the bundle "
        "declares, however fast the computer is. A client that relies on it waits longer.",
        "Declare what was measured; or reduce the lookahead first, then the window and what "
        "precedes it.",
    ),
    "layout": Explanation(
        "reads features before time",
        "The model runs on this number of frames only, but on other lengths if the last two axes "
        "are exchanged. If they are, all other findings are about features instead of frames.",
        "Name the axes with layout: NCT where features come before time, NTC where they do not.",
    ),
    "label": Explanation(
        "leaks labels",
        "An output depends on the label that it has to predict. Training then seems perfect, and "
        "the model has learned nothing.",
        "Pass only the labels before an output's own (shift them by one), mask the rest, and look "
        "for features that were computed from the labels.",
    ),
}
