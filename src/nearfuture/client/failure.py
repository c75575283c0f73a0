"""What goes wrong between a client and a server, told in one line."""

from nearfuture.error import NearfutureError


class ServerError(NearfutureError):
    """A server cannot be reached, refuses, breaks its protocol or leaves too early."""

    code = "unavailable"
