"""What a provider may be able to do beside the contract; lifecycle asks by `isinstance`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from .provider import Leftover, ResourceChange, SiteContext


@runtime_checkable
class Booked(Protocol):
    """SHOULD, for providers whose resources stand in a book beside the ledger: a stack."""

    def booked(self, context: SiteContext, found: Iterable[Leftover]) -> frozenset[str]:
        """Return the provider ids, of what a sweep found, that this book knows.

        Raises:
            ProviderError: it can't be read.
        """
        ...


@runtime_checkable
class Lagging(Protocol):
    """SHOULD, for providers whose lists may not have yet what they made a moment ago."""

    def listing_lag_s(self, context: SiteContext) -> float:
        """Return for how many seconds at most."""
        ...


@runtime_checkable
class Replacer(Protocol):
    """SHOULD, for providers that can make one node anew without touching the others."""

    def replace(self, context: SiteContext, names: Iterable[str]) -> None:
        """Remove these nodes of the spec, and what they stand in alone, and make them again.

        Names of nodes that don't exist are made. Their ledger entries follow.

        Raises:
            ProviderError: a node is not of this site, or could not be made.
        """
        ...


@runtime_checkable
class NamesMachines(Protocol):
    """SHOULD, for providers whose resources have other names than their cloud's machines."""

    def machines(self, context: SiteContext) -> Mapping[str, str]:
        """Return name of a resource, as a preview has it -> id of the machine that it stands for.

        Only of those that were made. Changes nothing.

        Raises:
            ProviderError: it can't be asked.
        """
        ...


@runtime_checkable
class LooksBack(Protocol):
    """SHOULD, for providers whose preview compares with their book and not with what is there."""

    def look_back(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Return how what is there differs from what was noted, changing neither.

        The effect is what became of it: update, delete, or keep where nothing did.

        Raises:
            ProviderError: it can't be asked, or a tool for that is missing.
        """
        ...
