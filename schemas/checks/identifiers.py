"""Ids of things that exist in a cloud, in the form the cloud writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..spec import CloudSite, Rung
from ..spec.noun import Noun
from .context import CheckContext
from .markets import rungs
from .registry import Finding, check


def _ids(context: CheckContext) -> Iterator[tuple[CloudSite, str, str, PathTuple]]:
    """Yield (site, kind, id, place) for everything that the spec names by an id."""
    for name, site in context.sites.items():
        if isinstance(site, CloudSite):
            for kind, text, below in _ids_of_site(site):
                if text is not None:
                    yield site, kind, text, ("sites", name, *below)
    yield from _ids_of_pools(context)


def _ids_of_pools(context: CheckContext) -> Iterator[tuple[CloudSite, str, str, PathTuple]]:
    """Yield the same of pools: images and capacity that is owned."""
    for name, pool in context.pools.items():
        cloud = context.cloud(pool) if pool.image is not None else None
        if cloud is not None and pool.image is not None:
            yield cloud, "image", pool.image, ("pools", name, "image")
    for _, pool, rung, path in rungs(context):
        cloud = context.cloud(pool)
        for kind in ("reservation", "capacity_block"):
            text = getattr(rung, kind, None) if isinstance(rung, Rung) else None
            if text is not None and cloud is not None:
                yield cloud, kind, text, (*path, kind)


def _ids_of_site(site: CloudSite) -> Iterator[tuple[str, str | None, PathTuple]]:
    yield "kms_key", site.kms_key, ("kms_key",)
    yield "image", site.image, ("image",)
    yield "zone", site.dns.zone if site.dns else None, ("dns", "zone")
    yield from _ids_of_network(site.network, ("network",))


def _ids_of_network(
    noun: Noun, path: PathTuple, kind: str = ""
) -> Iterator[tuple[str, str | None, PathTuple]]:
    """Yield what a network's keys name, the keys of its parts under the part's own kind."""
    for key in noun.__struct_fields__:
        value, below = getattr(noun, key), (*path, key)
        if isinstance(value, Noun):
            yield from _ids_of_network(value, below, kind or key)
        elif isinstance(value, list):
            yield from ((kind or key, text, (*below, index)) for index, text in enumerate(value))
        elif value is None or isinstance(value, str):
            yield kind or key, value, below


@check("GC318", summary="An id that does not look like one of the provider's.")
def strange_id(context: CheckContext) -> Iterator[Finding]:
    """Things that exist are named as the cloud names them: vpc-0abc, projects/p/global/networks/n.

    A name from the console's list, an id of something else, or one of another cloud is found by
    its form. Only the cloud knows whether it exists, so this is a warning.
    """
    for site, kind, text, path in _ids(context):
        facts = context.providers.get(site.provider)
        form = None if facts is None else facts.id_forms.get(kind)
        if form is None or re.fullmatch(form.pattern, text):
            continue
        yield Finding(
            summary=f'"{text[:60]}" does not look like {_what(kind)} of {site.provider}',
            path=path,
            severity=Severity.WARNING,
            hint=f"write it as {form.example}",
            relies_on=(path, ("sites", "*", "provider")),
        )


def _what(kind: str) -> str:
    words = {"kms_key": "a key", "zone": "a DNS zone", "image": "an image", "vpc": "a VPC"}
    return words.get(kind, f"a {kind.removesuffix('s').replace('_', ' ')}")
