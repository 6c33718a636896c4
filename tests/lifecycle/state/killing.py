"""Buckets whose process is killed, or held up, at its n-th change."""

from __future__ import annotations

from collections.abc import Callable

from gcluster.lifecycle.state.bucket import Bucket


class Killed(BaseException):
    """Ends a run where no handler looks."""


class KillingBucket:
    """Passes everything on, until so many changes were made."""

    def __init__(self, inner: Bucket, changes: int) -> None:
        """Let `changes` through."""
        self._inner = inner
        self._left = changes
        self.get = inner.get
        self.list = inner.list

    def create(self, key: str, data: bytes) -> None:
        """Write a new object."""
        self._change()
        self._inner.create(key, data)

    def replace(self, key: str, data: bytes) -> None:
        """Write an object whole."""
        self._change()
        self._inner.replace(key, data)

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._change()
        self._inner.delete(key)

    def _change(self) -> None:
        if not self._left:
            raise Killed
        self._left -= 1


class PausingBucket(KillingBucket):
    """Passes everything on; before its n-th change others work for as long as they like."""

    def __init__(self, inner: Bucket, changes: int, others: Callable[[], None]) -> None:
        """Let `changes` through first."""
        super().__init__(inner, changes)
        self._others = others

    def _change(self) -> None:
        self._left -= 1
        if self._left == -1:
            self._others()
