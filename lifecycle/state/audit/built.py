"""What a cluster was brought up with: gcluster's version, its roles, and the versions of software.

It is stored with each successful `up`, so that the changes of a newer gcluster or another software
lock can be shown before they are applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import gcluster

from ....inventory.compile import CompiledCluster
from ....inventory.compile.hooks import HookStep
from ....inventory.compile.steps import PHASES
from ...nodes.converge.role_files import role_digest
from ...planning.changes import UpgradeLine
from .. import Built

_VERSION = "_version"
_DIGITS = 12


def built(compiled: CompiledCluster) -> Built:
    """Return what a compiled cluster is brought up with."""
    versions: dict[str, str] = {}
    roles: dict[str, None] = {}
    for group in compiled.groups:
        for step in group.steps:
            if not isinstance(step, HookStep):
                roles[step.role] = None
            for name, value in step.variables.items():
                if name.endswith(_VERSION) and isinstance(value, str) and value:
                    versions[f"{group.name}: {name.removesuffix(_VERSION)}"] = value
    return Built(
        gcluster=gcluster.__version__,
        roles={role: _digest(role) for role in sorted(roles)},
        versions=dict(sorted(versions.items())),
    )


def _digest(role: str) -> str:
    """Return a short hash of all phases of a role."""
    return "".join(role_digest(role, phase)[:_DIGITS] for phase in PHASES)


def upgrade_lines(before: Built | None, after: Built) -> tuple[UpgradeLine, ...]:
    """Return what another gcluster, or another software lock, changes of what was applied.

    A role or version that is new, or no longer needed, isn't listed: the spec's fields show that.
    """
    return tuple(_lines(before, after))


def _lines(before: Built | None, after: Built) -> Iterator[UpgradeLine]:
    if before is None:
        return
    if before.gcluster != after.gcluster:
        yield UpgradeLine(what="gcluster", before=before.gcluster, after=after.gcluster)
    for name in _differing(before.versions, after.versions):
        yield UpgradeLine(what=name, before=before.versions[name], after=after.versions[name])
    for name in _differing(before.roles, after.roles):
        yield UpgradeLine(what=f"role {name}", before="", after="")


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [name for name in after if name in before and before[name] != after[name]]
