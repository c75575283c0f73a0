"""What turns gradients into steps: Muon for the matrices of the encoder, AdamW for the rest."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, optim

from nearfuture.error import NearfutureError
from nearfuture.model import Recognizer
from nearfuture.training.muon import Muon
from nearfuture.training.options import OptimizerOptions


class Optimizer:
    """Muon for the encoder's matrices, AdamW for its vectors, the lookahead and the output.

    Muon moves a matrix along the orthogonalised average of its gradients, so that no direction is
    neglected because others are steeper.

    Both follow one schedule: `step(lr_scale)` takes a step at that factor of their greatest rates.

    Args:
        model: The model whose parameters are moved.
        options: The rates, and the weight decay for all parameters.

    Attributes:
        optimizers: AdamW, and Muon where it has matrices, with their greatest learning rates.

    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers"; Loshchilov and Hutter 2019,
    arXiv 1711.05101 (AdamW).
    """

    def __init__(self, model: Recognizer, options: OptimizerOptions) -> None:
        self._names = {id(value): name for name, value in model.named_parameters()}
        learning_rate, muon_lr = options.rates
        matrices = [
            value for value in model.encoder.parameters() if value.ndim == 2 and muon_lr > 0
        ]
        of_muon = set(map(id, matrices))
        others = [value for value in model.parameters() if id(value) not in of_muon]
        decay = options.weight_decay
        adamw = optim.AdamW(others, lr=learning_rate, betas=(0.9, 0.98), weight_decay=decay)
        self.optimizers: list[tuple[optim.Optimizer, float]] = [(adamw, learning_rate)]
        if matrices:
            self.optimizers.append((Muon(matrices, lr=muon_lr, weight_decay=decay), muon_lr))

    def step(self, lr_scale: float) -> None:
        """Move every parameter that has a gradient, at this factor of the greatest rates."""
        for optimizer, rate in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * lr_scale
            optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """Return moments by the name of their parameter: `encoder.0.weight.exp_avg`."""
        return {
            f"{self._names[id(parameter)]}.{name}": value
            for optimizer, _ in self.optimizers
            for parameter, moments in optimizer.state.items()
            for name, value in moments.items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Set the moments that `state` returned.

        Raises:
            NearfutureError: There are moments of parameters that the model does not have.
        """
        by_name: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            name, _, moment = key.rpartition(".")
            by_name.setdefault(name, {})[moment] = value
        for optimizer, _ in self.optimizers:
            optimizer.state.clear()
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if moments := by_name.pop(self._names[id(parameter)], None):
                        optimizer.state[parameter] = {
                            # As torch has it: the count of steps stays where it is.
                            name: value if name == "step" else value.to(parameter.device)
                            for name, value in moments.items()
                        }
        if by_name:
            raise NearfutureError(
                f"the checkpoint has moments of {', '.join(by_name)}, which the model lacks",
                code="damaged",
            )
