"""The errors a user can meet; each message names the value, the limit and the way out."""


class NearfutureError(ValueError):
    """Bad input, told in one line: the value, the limit and the way out."""


class NotStreamable(NearfutureError):  # noqa: N818 - what it says, not that it failed
    """A layer needs the whole sequence, so it has nothing to say before the end of it."""
