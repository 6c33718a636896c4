"""The software lock: tested sets of versions, what `auto` resolves to, and what goes together.

The data is `schemas/catalog/stack.lock.yaml`; nothing here reads it before it is asked.
"""

from .lock import Lock, TestedSet, load_lock
from .pools import resolved_pools, resolved_software
from .resolve import Difference, Resolved, ResolvedComponent, resolve

__all__ = [
    "Difference",
    "Lock",
    "Resolved",
    "ResolvedComponent",
    "TestedSet",
    "load_lock",
    "resolve",
    "resolved_pools",
    "resolved_software",
]
