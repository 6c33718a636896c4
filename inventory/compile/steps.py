"""What the compiler emits: groups of hosts and the ordered steps each of them runs."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec

Json: TypeAlias = Any
"""A JSON value: what an Ansible variable can hold."""

Phase: TypeAlias = Literal[
    "preflight", "install", "configure", "join", "verify", "update", "remove"
]
PHASES: tuple[Phase, ...] = ("preflight", "install", "configure", "join", "verify")
"""The phases of a role, in the order they run."""
NAMED_PHASES: frozenset[Phase] = frozenset({"update", "remove"})
"""Phases that are never a part of a role as a whole: compiled only where the spec names them
("update"), or run where it no longer needs the role (`roles.removal_steps`)."""
CHANGING_PHASES: frozenset[Phase] = frozenset({"install", "configure", "join", "update", "remove"})
"""Phases that change a node; the others are read-only."""


class Stage(StrEnum):
    """Stages order roles; a stage starts when the one before it is done on enough hosts."""

    BASE = "base"
    DRIVERS = "drivers"
    FABRIC = "fabric"
    STORAGE = "storage"
    SCHEDULER = "scheduler"
    MONITORING = "monitoring"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of one role with its variables: the unit that is stamped on a node."""

    stage: Stage
    role: str
    """Name of the role in the collection gcluster.cluster."""
    phase: Phase
    variables: dict[str, Json]
    """Role variables of this phase only, as its argument_specs entry point declares them."""
    secrets: dict[str, str] = {}
    """Variable -> secret: converge sets the variable to the path of a file with the secret."""
    spares_jobs: bool = False
    """Jobs that run on the node don't feel this phase; else the node is drained for it first."""
    independent: bool = False
    """What it does on a host depends on no other host, so all pools run it at the same time."""
    from_mirror: bool = False
    """It takes what the cluster itself has made, so no image can be baked of it."""

    @property
    def key(self) -> str:
        """Name of the step and of its stamp: "slurm.configure"."""
        return f"{self.role}.{self.phase}"

    @property
    def order(self) -> int:
        """Its place in the stage: -1 ahead of all roles, 0 among the roles, 1 behind all."""
        return 0

    @property
    def needs_drain(self) -> bool:
        """Whether a running job could be affected: read-only phases affect none."""
        return not self.spares_jobs and self.phase in CHANGING_PHASES

    def digest(self, role_digest: str, secret_versions: dict[str, str]) -> str:
        """Return the stamp of this step: what it was compiled from, as SHA-256 in hex.

        Args:
            role_digest: hash of the role's files that this phase runs.
            secret_versions: secret name -> version id (never the secret itself).
        """
        content = msgspec.json.encode(
            [
                self.role,
                self.phase,
                self.variables,
                role_digest,
                {variable: secret_versions[name] for variable, name in self.secrets.items()},
            ],
            order="sorted",
        )
        return hashlib.sha256(content).hexdigest()


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts that run the same steps: one group per pool, controllers first."""

    name: str
    hosts: tuple[str, ...]
    steps: tuple[Step, ...]
    """Ordered by stage, then as the roles depend on each other."""
    environment: dict[str, str] = {}
    """What tasks on these hosts find in their environment: their proxy."""


class CompiledCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The whole cluster, compiled."""

    cluster: str
    groups: tuple[Group, ...]

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of all secrets that the steps need, sorted."""
        return tuple(
            sorted({s for g in self.groups for step in g.steps for s in step.secrets.values()})
        )
