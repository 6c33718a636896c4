"""Keys of pools that only clouds know."""

from __future__ import annotations

from collections.abc import Iterator

from ..mend.fix import Remove
from ..spec import Pool
from .context import CheckContext
from .registry import Finding, check

_KEYS = ("market", "mixed", "zones", "placement", "image", "disk", "public_address")


@check("GC127", summary="A pool of a site that is no cloud says what only clouds know.")
def cloud_key(context: CheckContext) -> Iterator[Finding]:
    """How machines are bought, where a cloud puts them and what they boot from is said of clouds.

    On bare metal, local and simulated sites these keys would do nothing, so they are mistakes:
    `market`, `mixed`, `zones`, `placement`, `image`, `disk` and `public_address`.
    """
    for name, pool in context.pools.items():
        site = context.sites.get(pool.site)
        if site is None or site.is_cloud:
            continue
        for key in _given(pool):
            path = ("pools", name, key)
            yield Finding(
                summary=f'pool "{name}": {key} is for clouds, site "{pool.site}" is '
                f"{site.provider}",
                path=path,
                at_key=True,
                hint=f"remove {key}",
                fix=Remove(path),
                relies_on=(path, ("pools", name, "site")),
            )


def _given(pool: Pool) -> list[str]:
    """Return the keys of clouds that a pool gives."""
    return [key for key in _KEYS if getattr(pool, key)]
