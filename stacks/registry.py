"""Which provider answers to which `provider:` of the spec; imported when first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import cast

from gcluster.stacks.provider import Provider, provider_error

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


@cache
def provider(name: str) -> Provider:
    """Return the provider called `name`.

    Raises:
        ProviderError: there is none of this name.
    """
    if name not in _PROVIDERS:
        known = ", ".join(names())
        raise provider_error("GC917", f'there is no provider "{name}"', hint=f"known: {known}")
    module, _, attribute = _PROVIDERS[name].partition(":")
    return cast("Provider", getattr(import_module(module), attribute)())
