"""The check that all sizes share."""

from nearfuture.error import NearfutureError


def positive(**sizes: int) -> None:
    """Refuse a size below 1 by its name."""
    for name, size in sizes.items():
        if size < 1:
            raise NearfutureError(
                f"`{name}` must be 1 or more, not {size}", code="out_of_range", parameter=name
            )
