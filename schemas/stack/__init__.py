"""The software lock: tested sets of versions, what `auto` resolves to, and what goes together.

The data is `schemas/catalog/stack.lock.yaml`; nothing here reads it before it is asked.
"""

from gcluster.schemas.stack.load import load_lock
from gcluster.schemas.stack.lock import Lock, TestedSet
from gcluster.schemas.stack.pools import resolved_pools, resolved_software
from gcluster.schemas.stack.resolve import resolve
from gcluster.schemas.stack.resolved import Difference, Resolved, ResolvedComponent

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
