"""Every diagnostic code there is or was: what it means, since when, and an example that is tested.

A code never changes its meaning and is never used again for another; `register.yaml` remembers.
`python -m gcluster.schemas.codes --write` adds new codes to it and renews docs/diagnostics.md.
"""

from gcluster.schemas.codes.examples import Example, example_of
from gcluster.schemas.codes.families import FAMILIES, family_of
from gcluster.schemas.codes.known import CodeExplanation, explanations
from gcluster.schemas.codes.registered import Entry, register

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
