"""What a pool's software resolves to: one version a component, and why that one."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from .lock import Distribution, Evidence

Origin: TypeAlias = Literal["asked", "lock", "cluster", "distribution"]
"""asked: the spec says it; lock: of the set; cluster: the same on all pools; distribution: of its
own packages."""


class ResolvedComponent(msgspec.Struct, frozen=True, kw_only=True):
    """A component and its version."""

    key: str
    name: str
    version: str
    origin: Origin
    verified: bool = True
    """False: the set's evidence doesn't say this version together with the others."""
    source: str = ""
    """Where the version comes from, when not from the set's evidence."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A component that the spec wants otherwise than the nearest set has it."""

    key: str
    name: str
    asked: str
    tested: str


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The software of a pool's nodes. Equal input gives an equal value."""

    set: str | None
    """The tested set that fits, else the nearest; None: no set was tested on such nodes."""
    tested: bool
    """Whether every version is one of the set."""
    reason: str
    """Why this set, in one sentence."""
    distribution: Distribution | None = None
    """None: what the hosts or the image have."""
    containers: Literal["pyxis", "none"] = "none"
    components: tuple[ResolvedComponent, ...] = ()
    differences: tuple[Difference, ...] = ()
    packages: tuple[str, ...] = ()
    """Packages that the GPUs need beside these, in whatever version fits: nvlsm."""
    evidence: Evidence | None = None

    @property
    def versions(self) -> dict[str, str]:
        """Every version the nodes get, by component."""
        return {component.key: component.version for component in self.components}

    def version(self, key: str) -> str | None:
        """Return a component's version; None when nothing says it."""
        return self.versions.get(key)
