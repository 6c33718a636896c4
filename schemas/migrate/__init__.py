"""Older spellings of the spec language: read as before, told with a warning, rewritten on demand.

Nothing here is imported for a spec that is written as the language is today.
"""

from gcluster.schemas.migrate.modernise import modernise
from gcluster.schemas.migrate.steps import STEPS, Move, Rename, Reword, Step
from gcluster.schemas.migrate.version import newer_version

__all__ = ["STEPS", "Move", "Rename", "Reword", "Step", "modernise", "newer_version"]
