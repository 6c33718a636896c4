"""What the key management services of clouds say no to, in terms of the spec's `secrets:`."""

from __future__ import annotations

from .provider import ProviderError, provider_error


def no_such_key(key: str, said: str) -> ProviderError:
    """Return the error for a key that isn't there, or that is disabled or about to be deleted."""
    return provider_error(
        "GC1160",
        f"there is no usable key {key}",
        detail=said,
        hint="look whether it exists in that account and place, and is enabled",
    )


def no_rights(key: str, said: str, rights: str) -> ProviderError:
    """Return the error for a login that may not use a key; `rights` is what it takes."""
    return provider_error(
        "GC1161",
        f"this login may not use the key {key}",
        detail=said,
        hint=f"give it {rights} on that key, or log in as somebody who has it",
    )


def not_wrapped_by(key: str, said: str) -> ProviderError:
    """Return the error for what a key can't open."""
    return provider_error(
        "GC905",
        f"what the state holds was not encrypted by {key} for this cluster, or is damaged",
        detail=said,
        hint="give the key that the cluster was made with, or restore the state from a backup",
    )
