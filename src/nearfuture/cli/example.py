"""The input that a model is audited with: from a file that runs no code, or drawn at random."""

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfuture.cli.extra import HOW_TO_TRAIN
from nearfuture.error import MissingDependency, NearfutureError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def whole_numbers(flag: str, text: str) -> tuple[int, ...]:
    """Read numbers above 0 between commas.

    >>> whole_numbers("--shape", "1,200,80")
    (1, 200, 80)
    """
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = (0,)
    if min(numbers) < 1:
        raise NearfutureError(
            f"{flag} takes whole numbers above 0 between commas, such as 1,200,80, not {text!r}"
        )
    return numbers


def drawn(
    shape: tuple[int, ...], *, dtype: str, tokens: int | None, seed: int
) -> "NDArray[np.generic]":
    """Draw standard normal values, or tokens.

    Args:
        shape: Shape of the array.
        dtype: Type of the values.
        tokens: Draw whole numbers below this instead.
        seed: The same seed draws the same array.

    >>> drawn((1, 3), dtype="float32", tokens=5, seed=0).tolist()
    [[4, 3, 2]]
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    if tokens is None:
        return rng.standard_normal(shape).astype(dtype)
    if tokens < 1:
        raise NearfutureError(
            f"`tokens` is a number of tokens from 1, not {tokens}",
            code="out_of_range",
            parameter="tokens",
        )
    return rng.integers(0, tokens, shape)


def read(path: Path) -> Any:
    """Read the array in a .npy or .npz file, or the tensor in a .pt file.

    Raises:
        NearfutureError: where there is no such file, where it holds anything else, or where opening
            it could run code.
    """
    if not path.is_file():
        raise NearfutureError(f"there is no file {path}", code="not_found")
    if path.suffix in (".npy", ".npz"):
        return _read_numpy(path)
    if path.suffix in (".pt", ".pth"):
        return _read_torch(path)
    raise NearfutureError(
        f"an example is a .npy, .npz or .pt file, not {path.name}", code="unsupported"
    )


def cast(values: Any, dtype: str) -> Any:
    """Convert an array or a tensor to another type; what is not real numbers stays as it is.

    >>> import numpy as np
    >>> cast(np.arange(2), "float32").tolist(), cast(np.array(["a"]), "float32").tolist()
    ([0.0, 1.0], ['a'])
    """
    if type(values).__module__ == "numpy":
        return values.astype(dtype) if values.dtype.kind in "fiub" else values
    if values.is_complex():
        return values
    return values.double() if dtype == "float64" else values.float()


def tensor(array: "NDArray[np.generic]") -> Any:
    """Convert an array to a torch tensor.

    Raises:
        NearfutureError: without torch.
    """
    return _import_torch("a torch tensor").from_numpy(array)


def _import_torch(what: str) -> Any:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingDependency(what, "torch", HOW_TO_TRAIN) from error
    return torch


def _read_numpy(path: Path) -> Any:
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            arrays = dict(loaded)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if "pickle" in str(error):
            raise NearfutureError(
                f"{path} is no plain array of numbers and is not opened, since what it holds could "
                f"run code: save the input alone, with numpy.save(path, array)",
                code="unsupported",
            ) from error
        raise NearfutureError(
            f"{path} cannot be read as an array: {error}", code="damaged"
        ) from error
    if len(arrays) != 1:
        raise NearfutureError(
            f"{path} holds {len(arrays)} arrays ({', '.join(arrays)}): save the input alone"
        )
    return next(iter(arrays.values()))


def _read_torch(path: Path) -> Any:
    import pickle
    import warnings

    torch = _import_torch(f"to read {path.name}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how it was written
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise NearfutureError(
            f"{path} is no plain tensor and is not opened, since what it holds could run code: "
            f"save the input alone, with torch.save(tensor, path)",
            code="unsupported",
        ) from error
    except (RuntimeError, OSError, EOFError) as error:
        reason = str(error).partition("\n")[0]
        raise NearfutureError(
            f"{path} cannot be read as a tensor: {reason}", code="damaged"
        ) from error
    if not isinstance(loaded, torch.Tensor):
        raise NearfutureError(
            f"{path} holds a {type(loaded).__name__}, not a tensor: save the input alone"
        )
    return loaded
