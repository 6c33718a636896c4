"""What the double of Azure says no with."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818  # it is what Azure says
    """Azure's refusal."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code
