"""Every diagnostic code there is or was: what it means, since when, and an example that is tested.

A code never changes its meaning and is never used again for another; `register.yaml` keeps them.
`python -m gcluster.schemas.codes --write` adds new codes to it and writes docs/diagnostics*.md.
"""

from .explanations import CodeExplanation, Example, example_of, explanations
from .registered import FAMILIES, Entry, family_of, register

__all__ = [
    "FAMILIES",
    "CodeExplanation",
    "Entry",
    "Example",
    "example_of",
    "explanations",
    "family_of",
    "register",
]
