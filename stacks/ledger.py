"""The ledger's interface for providers: recording and querying resources; part of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .provider import Resource


class Ledger(Protocol):
    """The caller's book of what exists: an intent is stored before the call that creates.

    Safe to call from many threads; what is reported at the same time is written together.
    """

    def intend(self, site: str, resource: Resource) -> str:
        """Store the intent to create `resource`; return its id, the call's idempotency token.

        An open intent (no result yet) of the same site and resource key is returned again.
        """
        ...

    def intend_many(self, site: str, resources: Iterable[Resource]) -> dict[str, str]:
        """Store many intents at once; return resource key -> intent."""
        ...

    def created(self, intent: str, provider_id: str) -> None:
        """Record that the intended resource exists.

        May be called twice: a provider that was killed between creating and recording finds the
        resource by its token label and records it again.
        """
        ...

    def created_many(self, created: Mapping[str, str]) -> None:
        """Record many at once: intent -> the provider's id."""
        ...

    def adopt(self, site: str, found: Iterable[tuple[str, Resource, str]]) -> None:
        """Record what is there, each as (intent that it carries, resource, provider's id).

        An intent that the ledger doesn't have was lost with a part of the state: the resource gets
        another. What is known already stays as it is.
        """
        ...

    def failed(self, intent: str, reason: str) -> None:
        """Record that it was not created and nothing is left of it."""
        ...

    def deleted(self, site: str, resource_key: str, provider_id: str) -> None:
        """Record that it is gone."""
        ...

    def unclear(self, site: str) -> Mapping[str, str]:
        """Return intent -> resource key, of those without a result: a run was killed there."""
        ...

    def known(self, site: str) -> Mapping[str, str]:
        """Return the provider's id -> resource key, of all that was created and not deleted."""
        ...
