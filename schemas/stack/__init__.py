"""The software lock: tested sets of versions, what `auto` resolves to, and what goes together.

The data is `schemas/catalog/stack.lock.yaml`; nothing here reads it before it is asked.
"""

from .load import load_lock
from .lock import Lock, TestedSet
from .pools import resolved_pools, resolved_software
from .resolve import resolve
from .resolved import Difference, Resolved, ResolvedComponent

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
