"""The one error of the kernels. No torch."""


class UnavailableError(Exception):
    """The kernels cannot be used here; the message says why. Never leaves the kernels."""
