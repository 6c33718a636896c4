"""Which provider answers to which `provider:` of the spec; imported when first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from gcluster.stacks.provider import Provider, provider_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from gcluster.schemas.catalog import Catalog

_PROVIDERS = {
    "aws": "gcluster.stacks.aws.provider:AwsProvider",
    "azure": "gcluster.stacks.azure.provider:AzureProvider",
    "bare-metal": "gcluster.stacks.bare_metal.provider:BareMetalProvider",
    "gcp": "gcluster.stacks.gcp.provider:GcpProvider",
    "local": "gcluster.stacks.local.provider:LocalProvider",
    "simulated": "gcluster.stacks.simulated.provider:SimulatedProvider",
}


def names() -> tuple[str, ...]:
    """Return the names of all providers, sorted."""
    return tuple(sorted(_PROVIDERS))


_BY_CATALOG = frozenset({"aws", "azure", "gcp"})
"""Providers that look machine types up, and so must know a user's own."""


def provider(name: str, catalog: Catalog | None = None) -> Provider:
    """Return the provider called `name`.

    Args:
        name: as the spec writes it.
        catalog: machine types with a user's own; default: gcluster's.

    Raises:
        ProviderError: there is none of this name.
    """
    made = _made_by(name)
    if catalog is None or name not in _BY_CATALOG:
        return _shared(name)
    return made(catalog)


@cache
def _shared(name: str) -> Provider:
    return _made_by(name)()


def _made_by(name: str) -> Callable[..., Provider]:
    if name not in _PROVIDERS:
        known = ", ".join(names())
        raise provider_error("GC917", f'there is no provider "{name}"', hint=f"known: {known}")
    module, _, attribute = _PROVIDERS[name].partition(":")
    return cast("Callable[..., Provider]", getattr(import_module(module), attribute))
