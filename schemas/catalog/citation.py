"""Where a number comes from, and when that was read."""

from typing import Annotated, TypeAlias

from msgspec import Meta

from ..spec.noun import Noun

Date: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$(?!\n)")]
"""YYYY-MM or YYYY-MM-DD."""


class Citation(Noun, frozen=True):
    """A source and the date it said so."""

    source: Annotated[str, Meta(min_length=1)]
    """Where it stands: a document, a page, a measurement."""
    date: Date
    """When the source was read, or what it is dated: YYYY-MM or YYYY-MM-DD."""
