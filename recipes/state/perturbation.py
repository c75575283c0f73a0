"""How long a change of one input is seen in the state.

Method: run the layer over two inputs that differ in one frame s, and compare its whole state after
every frame from s on. For an LSTM the state is h and c. Example: with `h_t = 0.5 h_{t-1} + x_t`, a
change of 1 at s is 1, 0.5, 0.25 … later: a share of 2^−k after k frames, below 1 % from k = 7 on.

Shapes: `B` sequences, `T` frames, `D` features.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nearfuture import NearfutureError
from nearfuture.layers import Recurrent, State


@torch.no_grad()
def state_difference(layer: Recurrent, x: Tensor, changed: Tensor, frame: int) -> Tensor:
    """Measure how much of a change of one frame is left in the state, k frames later.

    `r_k = ‖s_{frame+k}(x') − s_{frame+k}(x)‖ / ‖s_frame(x') − s_frame(x)‖`, over all sequences
    together, so that `r_0 = 1`.

    Args:
        layer: whose state it is; in its own precision.
        x: (B, T, D).
        changed: the same but for `frame`.
        frame: s.

    Returns:
        (T − frame,): r_0, r_1, …

    Raises:
        NearfutureError: where other frames differ, or none.

    >>> from nearfuture.layers import RNN
    >>> layer = RNN(1, 1, nonlinearity="relu", bias=False)
    >>> _ = layer.weight_ih.data.fill_(1.0), layer.weight_hh.data.fill_(0.5)
    >>> x = torch.ones(1, 4, 1)
    >>> changed = x.clone()
    >>> changed[0, 1] = 2.0
    >>> state_difference(layer, x, changed, 1)
    tensor([1.0000, 0.5000, 0.2500], dtype=torch.float64)
    """
    differs = (x != changed).any(dim=-1).any(dim=0)
    if differs.nonzero().flatten().tolist() != [frame]:
        raise NearfutureError(
            f"`changed` must differ from `x` in frame {frame} alone, not in "
            f"{differs.nonzero().flatten().tolist()}",
            parameter="changed",
        )
    # Not as one batch: a row's last bit depends on where in a batch it stands.
    before, after = _states(layer, x)[frame:], _states(layer, changed)[frame:]
    difference = torch.linalg.vector_norm(after - before, dim=(1, 2))
    if difference[0] == 0:
        raise NearfutureError(
            f"the change of frame {frame} does not change the state at all: a share of nothing is "
            f"not defined",
            parameter="changed",
        )
    share: Tensor = difference / difference[0]
    return share


def frames_seen(difference: Tensor, share: float = 0.01) -> int:
    """Return the last distance at which more than `share` of a change is left.

    Where it is the last that was measured, it may be more.

    >>> frames_seen(torch.tensor([1.0, 0.5, 0.02, 0.001]))
    2
    """
    return int((difference > share).nonzero().max())


def _states(layer: Recurrent, x: Tensor) -> Tensor:
    """The state after every frame (T, B, H), in float64."""
    x = x.to(layer.weight_ih.dtype)
    one = torch.ones(len(x), dtype=torch.int64)
    state = layer.start(len(x))
    states = []
    for t in range(x.shape[1]):
        _, _, state = layer.step(x[:, t : t + 1], one, state)
        states.append(_flat(state).double())
    return torch.stack(states)


def _flat(state: State) -> Tensor:
    """The whole state of each row in one vector: (B, H), or (B, 2H) for h and c."""
    if isinstance(state, Tensor):
        return state
    return torch.cat([_flat(part) for part in state], dim=-1)
