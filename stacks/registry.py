"""The provider of each `provider:` of the spec; imported on first use.

There is no list here: the sites that a spec can have (`schemas/spec/sites/__init__.py`) name the
providers, and `bare-metal` is `BareMetalProvider` of `stacks/bare_metal/provider.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from ..schemas.catalog import Catalog
from ..schemas.spec.sites import SITE_TYPES
from .provider import Provider, provider_error

if TYPE_CHECKING:
    from .pulumi.provider import ManagedKubernetes


def names() -> tuple[str, ...]:
    """Return the names of all providers, sorted."""
    return tuple(sorted(SITE_TYPES))


def clouds() -> tuple[str, ...]:
    """Return the names of the providers that rent machines out, sorted."""
    return tuple(name for name in names() if SITE_TYPES[name].is_cloud)


def managed_kubernetes(control_plane: str) -> ManagedKubernetes:
    """Return the Kubernetes of a cloud that a spec calls `eks`, `gke` or `aks`.

    Raises:
        ProviderError: no cloud has one of this name.
    """
    of = {site.managed_kubernetes: name for name, site in SITE_TYPES.items()}
    found = provider(of[control_plane]).managed_kubernetes if of.get(control_plane) else None
    if found is None:
        raise provider_error("GC917", f'no cloud runs a control plane "{control_plane}"')
    return found


def provider(name: str, catalog: Catalog | None = None) -> Provider:
    """Return the provider called `name`.

    Args:
        name: as in the spec.
        catalog: machine types with a user's own; default: gcluster's. Only clouds use them.

    Raises:
        ProviderError: there is none of this name.
    """
    if name not in SITE_TYPES:
        known = ", ".join(names())
        raise provider_error("GC917", f'there is no provider "{name}"', hint=f"known: {known}")
    if catalog is None or not SITE_TYPES[name].is_cloud:
        return _shared(name)
    return _made_by(name)(catalog)


@cache
def _shared(name: str) -> Provider:
    return _made_by(name)()


def _made_by(name: str) -> Callable[..., Provider]:
    """Return the class of a provider, by its name alone."""
    module = import_module(f"gcluster.stacks.{name.replace('-', '_')}.provider")
    words = "".join(word.capitalize() for word in name.split("-"))
    return cast("Callable[..., Provider]", getattr(module, f"{words}Provider"))
