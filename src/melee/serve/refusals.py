"""Errors that have a status: what a caller is answered."""

from melee.errors import DataError, InputError, MeleeError


class Refusal(MeleeError):  # noqa: N818 - nothing has gone wrong here
    """A request that is not answered as its caller hoped, with the status that says so."""

    def __init__(self, status: int, sentence: str, *, close: bool = False) -> None:
        super().__init__(sentence)
        self.status = status
        self.close = close  # whether the connection cannot be used any more


def status_of(error: MeleeError) -> int:
    """The status of an error of the library: 400 is the caller's, 503 may be over soon."""
    if isinstance(error, Refusal):
        return error.status
    if isinstance(error, InputError):
        return 400
    return 503 if isinstance(error, DataError) else 500
