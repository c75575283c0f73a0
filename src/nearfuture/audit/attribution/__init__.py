"""By which operation of a model something enters: the future, the padding, or another row."""

from nearfuture.audit.attribution.attribution import Attribution

__all__ = ["Attribution"]
