"""The patch that takes a key from one place and puts it, with its value, deeper."""

from __future__ import annotations

from ..diagnostics import Patch, PathTuple
from ..mend.fix import Insert, Remove
from ..mend.patches import fitting, is_odd_key, patch_of, yaml_text
from ..mend.places import Place, place_of
from ..text.document import Document


def move_patch(document: Document, path: PathTuple, to: tuple[str, ...]) -> Patch | None:
    """Return one patch for both ends and what is between them; None where that isn't certain.

    Args:
        document: where the entry stands.
        path: of the entry.
        to: keys from the mapping that holds it.
    """
    place = place_of(document, path)
    if place is None or place.is_block or place.kind in {"*", "|", ">"}:
        return None
    if place.content != place.offsets.start:
        return None  # an anchor or tag stands before the value
    value = document.text[place.content : place.end]
    if "\n" in value or "\r" in value or not value:
        return None
    if place.holder is not None and to[0] not in place.holder.value:
        return _in_its_place(place, to, value)
    removed = patch_of(Remove(path), document)
    inserted = patch_of(Insert((*path[:-1], *to[:-1]), to[-1], value), document)
    if removed is None or inserted is None:
        return None
    return _together(document, removed, inserted)


def _in_its_place(place: Place, to: tuple[str, ...], value: str) -> Patch | None:
    """Return the patch that writes the mappings that are new around the value."""
    text = fitting(value, in_flow=True)
    for key in reversed(to[1:]):
        text = f"{{{yaml_text(key)}: {text}}}"
    if is_odd_key(place):
        return None
    span = place.document.exact(place.start, place.end)
    return Patch(span=span, replacement=f"{yaml_text(to[0])}: {text}")


def _together(document: Document, *patches: Patch) -> Patch | None:
    """Return one patch that does what two do, or None when they overlap."""
    edits = sorted(
        (
            document.offset(patch.span.line, patch.span.column),
            document.offset(patch.span.end_line, patch.span.end_column),
            patch.replacement,
        )
        for patch in patches
    )
    (start, end, first), (second_start, second_end, second) = edits
    if second_start < end:
        return None
    between = document.text[end:second_start]
    span = document.exact(start, second_end)
    return Patch(span=span, replacement=f"{first}{between}{second}")
