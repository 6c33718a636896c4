"""The software lock: tested sets of versions, what `auto` resolves to, and what goes together.

The data is `schemas/stack/stack.lock.yaml`; nothing here reads it before it is needed.
"""

from .lock import Lock, TestedSet, load_lock
from .pools import resolved_pools, resolved_software
from .resolve import resolve
from .resolved import Difference, Resolved, ResolvedComponent
from .table import MissingSoftware, SoftwareRow

__all__ = [
    "Difference",
    "Lock",
    "MissingSoftware",
    "Resolved",
    "ResolvedComponent",
    "SoftwareRow",
    "TestedSet",
    "load_lock",
    "resolve",
    "resolved_pools",
    "resolved_software",
]
