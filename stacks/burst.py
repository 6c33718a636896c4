"""The ledger's side of a burst: what becomes of its intents where the cloud refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from .ledger import Ledger
from .provider import ProviderError

_UNSURE = frozenset({"GC964", "GC966"})
"""Codes of refusals after which a cloud may have made something: it could not be asked to the end,
or said what we don't know."""


@contextmanager
def burst(ledger: Ledger, intents: Iterable[str], *, is_left: Callable[[], bool]) -> Iterator[None]:
    """Close the intents as failed where the body fails, and surely nothing of it is left.

    Args:
        ledger: has the intents.
        intents: of the nodes that are being made.
        is_left: asks the cloud whether there are machines of the burst; that it can't be asked
            counts as yes.
    """
    try:
        yield
    except ProviderError as error:
        if not any(found.code in _UNSURE for found in error.diagnostics) and not _asked(is_left):
            for intent in intents:
                ledger.failed(intent, str(error))
        raise


def _asked(is_left: Callable[[], bool]) -> bool:
    try:
        return is_left()
    except ProviderError:
        return True
