"""What a plan is made of: provider changes and node steps, each with its disruption and reason."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from gcluster.schemas.diagnostics import Diagnostic
from gcluster.stacks.provider import ResourceChange

Disruption: TypeAlias = Literal["none", "in-place", "rolling", "replace", "destroy"]


class SitePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What apply would do at one site."""

    site: str
    provider: str
    changes: tuple[ResourceChange, ...]
    unobserved: str = ""
    """Why the site could not be asked what exists; then `changes` is all that the spec wants."""


class StepChange(msgspec.Struct, frozen=True, kw_only=True):
    """One step that would run, and where. Hosts as a Slurm host range."""

    step: str
    """"slurm.configure"."""
    pool: str
    hosts: str
    count: int
    reason: str
    """"never ran here", "its inputs changed", "this node isn't there yet"."""
    disruption: Disruption


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster plan`: what `up` would do now."""

    cluster: str
    spec_hash: str
    sites: tuple[SitePlan, ...]
    steps: tuple[StepChange, ...]
    unreachable: tuple[str, ...]
    """Hosts that exist but didn't answer: their steps are unknown, and said to be."""
    usd_per_hour: float | None
    """Of the machines that would exist afterwards; None: a price is unknown."""
    worst_usd_per_hour: float | None
    """With every elastic machine running, on the dearest rung of its market; None: unknown."""
    observed_age_s: float
    diagnostics: tuple[Diagnostic, ...] = ()
    """Warnings about the spec: what its checks found, and what this version leaves out."""

    @property
    def is_empty(self) -> bool:
        """Whether `up` would change nothing."""
        acts = any(c.effect != "keep" for site in self.sites for c in site.changes)
        return not acts and not self.steps and not self.unreachable
