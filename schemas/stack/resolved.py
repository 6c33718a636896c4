"""What a pool's software resolves to: components with their versions, and the table of rows."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from .lock import Distribution, Evidence
from .table import MissingSoftware, SoftwareRow

Install: TypeAlias = Literal["", "built", "distribution"]
"""Of Slurm: whether the cluster builds its packages or takes the distribution's own."""
Origin: TypeAlias = Literal["requested", "lock", "companion", "cluster", "distribution", "image"]
"""requested: the spec says it; lock: of the set; companion: no set says it, and it goes with the
rest; cluster: the same on all pools; distribution: of its own packages; image: what the nodes boot
has it."""


INBOX = "inbox"
"""Version of drivers that are the distribution's own."""


class ResolvedComponent(msgspec.Struct, frozen=True, kw_only=True):
    """A component and its version."""

    key: str
    name: str
    version: str
    """"": in whichever version the image has it."""
    origin: Origin
    verified: bool = True
    """False: the set's evidence doesn't say this version together with the others."""
    source: str = ""
    """Where the version comes from, when not from the set's evidence."""
    date: str = ""
    """Of that source."""
    install: Install = ""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A component that the spec wants otherwise than the nearest set has it."""

    key: str
    name: str
    requested: str
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
    """Packages that the GPUs need in addition to these, in whatever version fits: nvlsm."""
    evidence: Evidence | None = None
    image: str | None = None
    """Name in the lock of what the nodes boot, where that is known to bring software."""
    rows: tuple[SoftwareRow, ...] = ()
    """The table that is compiled: each piece is a role's, the image's, or not wanted."""
    missing: tuple[MissingSoftware, ...] = ()
    """What the nodes need and nothing brings: `validate` says no."""

    @property
    def versions(self) -> dict[str, str]:
        """Every version the nodes have, by component; unknown ones are left out."""
        return {c.key: c.version for c in self.components if c.version}

    def installs(self, key: str) -> str | None:
        """Return the version of a component that a role installs; None: no role does."""
        for row in self.rows:
            if row.key == key:
                return row.version if row.outcome == "role" else None
        return None

    def has(self, key: str) -> bool:
        """Say whether the nodes have a component: by a role, by their image, or preinstalled."""
        return any(row.key == key and row.is_there for row in self.rows)

    def version(self, key: str) -> str | None:
        """Return a component's version; None when nothing says it."""
        return self.versions.get(key)
