"""Older spellings of the spec language: read as before, told with a warning, rewritten on demand.

Nothing here is imported for a spec that is written as the language is today.
"""

from .modernise import modernise
from .steps import STEPS, Move, Rename, Reword, Step
from .version import newer_version

__all__ = ["STEPS", "Move", "Rename", "Reword", "Step", "modernise", "newer_version"]
