"""Which kinds an API server has: their plural names, and which are in namespaces."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ....schemas.decoding import decode_yaml
from ..kubectl import ApiRefused, Kubectl

if TYPE_CHECKING:
    from ....inventory.compile.kubernetes_objects.objects import Object
    from ..objects import ObjectKey

_LAST = 3
"""Columns that each line ends with: APIVERSION NAMESPACED KIND; short names may be missing."""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """The kinds of an API server."""

    kinds: dict[tuple[str, str], tuple[str, bool]]
    """Group and kind -> name for kubectl (deployments.apps), whether it is in namespaces."""
    versions: dict[tuple[str, str], str] = {}
    """Group and kind -> the version that the server prefers: apps/v1."""

    def name_of(self, group: str, kind: str) -> str:
        """Return how kubectl calls a kind; "" where the server doesn't have it."""
        return self.kinds.get((group, kind), ("", False))[0]

    def placed(self, made: Object, namespace: str) -> Object:
        """Return an object in its namespace: an add-on's own, unless it says another."""
        group = str(made["apiVersion"]).rpartition("/")[0]
        _, has_namespace = self.kinds.get((group, str(made["kind"])), ("", False))
        if not has_namespace or made["metadata"].get("namespace"):
            return made
        return made | {"metadata": made["metadata"] | {"namespace": namespace}}

    def is_custom(self, key: ObjectKey) -> bool:
        """Whether a CRD brings the kind: who looks after such objects may have to let them go."""
        return key.group not in built_in_groups()

    def of_groups(self, groups: Collection[str]) -> list[str]:
        """Return the kinds of API groups, as kubectl calls them."""
        return sorted(name for (group, _), (name, _) in self.kinds.items() if group in groups)


class _BuiltIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What built_in.yaml says."""

    groups: frozenset[str]
    source: str
    date: str


@cache
def built_in_groups() -> frozenset[str]:
    """Return the API groups that an API server has by itself, as built_in.yaml has them."""
    path = Path(__file__).with_name("built_in.yaml")
    return decode_yaml(path.read_bytes(), _BuiltIn).groups


def read_served(kubectl: Kubectl) -> Served:
    """Ask for all kinds that can be listed; those of an aggregated API that is down are missing.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: it named no kind.
    """
    answer = kubectl.run("api-resources", "--verbs=list,delete", "--no-headers")
    found, versions = {}, {}
    for line in answer.stdout.splitlines():
        columns = line.split()
        if len(columns) > _LAST and columns[-2] in {"true", "false"}:
            group = columns[-3].rpartition("/")[0]
            name = f"{columns[0]}.{group}" if group else columns[0]
            found[group, columns[-1]] = (name, columns[-2] == "true")
            versions[group, columns[-1]] = columns[-3]
    if not found:
        raise ApiRefused(answer.stderr or "it named no kind")
    return Served(kinds=found, versions=versions)
