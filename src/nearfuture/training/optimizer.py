"""What turns gradients into steps: Muon for the matrices of the encoder, AdamW for the rest."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, optim

from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.training.muon import Muon
from nearfuture.training.options import TrainingOptions


class Optimizer:
    """Muon for the encoder's matrices, AdamW for its vectors, the lookahead and the output.

    Muon moves a matrix along the orthogonalised average of its gradients, so that no direction is
    neglected because others are steeper.

    Both follow one schedule: `step(share)` takes a step at that share of their greatest rates.

    Args:
        model: whose parameters are moved.
        options: the rates, and AdamW's weight decay for all.

    Attributes:
        parts: the optimisers with their greatest learning rates.

    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers"; Loshchilov and Hutter 2019,
    arXiv 1711.05101 (AdamW).
    """

    def __init__(self, model: Recognizer, options: TrainingOptions) -> None:
        self._names = {id(value): name for name, value in model.named_parameters()}
        matrices = [
            value
            for value in model.encoder.parameters()
            if value.ndim == 2 and options.matrix_rate > 0
        ]
        apart = set(map(id, matrices))
        others = [value for value in model.parameters() if id(value) not in apart]
        decay = options.weight_decay
        adamw = optim.AdamW(others, lr=options.learning_rate, betas=(0.9, 0.98), weight_decay=decay)
        self.parts: list[tuple[optim.Optimizer, float]] = [(adamw, options.learning_rate)]
        if matrices:
            muon = Muon(matrices, lr=options.matrix_rate, weight_decay=decay)
            self.parts.append((muon, options.matrix_rate))

    def step(self, share: float) -> None:
        """Move every parameter that has a gradient, at this share of the greatest rates."""
        for part, rate in self.parts:
            for group in part.param_groups:
                group["lr"] = rate * share
            part.step()

    def state(self) -> dict[str, Tensor]:
        """Moments by the name of their parameter: `encoder.0.weight.exp_avg`."""
        return {
            f"{self._names[id(parameter)]}.{name}": value
            for part, _ in self.parts
            for parameter, moments in part.state.items()
            for name, value in moments.items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state`.

        Raises:
            NearfutureError: for moments of parameters that the model does not have.
        """
        by_name: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            name, _, moment = key.rpartition(".")
            by_name.setdefault(name, {})[moment] = value
        for part, _ in self.parts:
            part.state.clear()
            for group in part.param_groups:
                for parameter in group["params"]:
                    if moments := by_name.pop(self._names[id(parameter)], None):
                        part.state[parameter] = {
                            # As torch has it: the count of steps stays where it is.
                            name: value if name == "step" else value.to(parameter.device)
                            for name, value in moments.items()
                        }
        if by_name:
            raise NearfutureError(f"there are moments of {', '.join(by_name)}, which is not there")
