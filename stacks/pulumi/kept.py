"""Which storage of the spec a protected resource holds the data of, told by a recorded program."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import msgspec

from ..provider import Leftover
from .checkpoint import StackResource, resource_key, staying
from .recorded import RecordedGraph, RecordedResource

Owners: TypeAlias = dict[str, frozenset[str]]
"""Key of a protected resource -> the storage that needs it: it may go when all of that goes."""


def owners(
    graph: RecordedGraph, named: Mapping[str, Iterable[str]], *, others: Iterable[str] = ()
) -> Owners:
    """Return the owners of what is protected in a program.

    Args:
        graph: the program, recorded.
        named: name of a resource or component -> the storage it is made for; the nearest counts.
        others: owners of what is in none of these; () leaves it out, and it stays protected.
    """
    by_urn = {resource.urn: resource for resource in graph.resources}
    found: Owners = {}
    for resource in graph.resources:
        if resource.options.protect:
            mine = frozenset(_nearest(resource, by_urn, named) or others)
            if mine:
                found[resource_key(resource.urn)] = mine
    return found


def _nearest(
    resource: RecordedResource,
    by_urn: Mapping[str, RecordedResource],
    named: Mapping[str, Iterable[str]],
) -> Iterable[str]:
    here: RecordedResource | None = resource
    while here is not None:
        if here.name in named:
            return named[here.name]
        here = by_urn.get(here.parent)
    return ()


def freed(owned: Owners, delete: Collection[str]) -> frozenset[str]:
    """Return the keys of what may go with the named storage: nothing else needs it."""
    return frozenset(key for key, names in owned.items() if names <= frozenset(delete))


def told_apart(
    found: Iterable[Leftover],
    stack: Collection[StackResource],
    owned: Owners,
    delete: Collection[str],
) -> tuple[Leftover, ...]:
    """Mark what stays: the stack knows what is protected, and what that stands in.

    What the stack doesn't know is left as it was found.
    """
    kept = staying(stack, freed(owned, delete))
    ids = {_plain(resource.id): resource for resource in stack if resource.id}
    return tuple(_marked(item, ids, kept, owned) for item in found)


def known_ids(found: Iterable[Leftover], stack: Collection[StackResource]) -> frozenset[str]:
    """Return the provider ids of what stands in the stack, by its id or as its own name."""
    ids = {_plain(resource.id) for resource in stack if resource.id}
    return frozenset(
        item.provider_id for item in found if ids & {_plain(item.provider_id), _plain(item.name)}
    )


def _marked(
    item: Leftover, ids: Mapping[str, StackResource], kept: Collection[str], owned: Owners
) -> Leftover:
    resource = ids.get(_plain(item.provider_id)) or ids.get(_plain(item.name))
    if resource is None:
        return item
    storage = tuple(sorted(owned.get(resource.key, ()))) if item.kept_data else ()
    return msgspec.structs.replace(item, kept_data=resource.key in kept, storage=storage)


def _plain(identifier: str) -> str:
    """Return an id as all services spell it: Azure mixes cases, Google's links lead with a host."""
    return identifier.casefold().partition("/compute/v1/")[2] or identifier.casefold()
