"""Objects of the API as rows of a few fields: thousands of them come in one short answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .kubectl import Kubectl

_FIELD, _RECORD = "\x1f", "\x1e"
"""Unit and record separators of ASCII: no message of a scheduler or a person has them."""


def rows(kubectl: Kubectl, *what: str, fields: Mapping[str, str]) -> list[dict[str, str]]:
    """Return name -> text of each object; "" for what an object doesn't have.

    Args:
        kubectl: the API.
        what: what `kubectl get` is to get, with its options.
        fields: name -> JSONPath, braces included; several in one are joined as written.

    Raises:
        ApiRefused: there is no such kind.
        ApiSilent: no API server answers.
    """
    template = f"--output=jsonpath={row_template(list(fields.values()))}"
    return read_rows(kubectl.text("get", *what, template), list(fields))


def row_template(paths: Sequence[str]) -> str:
    """Return the JSONPath template of a row for each item of a list."""
    between = '{"\\u001f"}'
    return "{range .items[*]}" + between.join(paths) + '{"\\u001e"}{end}'


def read_rows(text: str, names: Sequence[str]) -> list[dict[str, str]]:
    """Read what such a template printed; a record that was cut short is left out."""
    records = (record.split(_FIELD) for record in text.split(_RECORD))
    return [
        dict(zip(names, fields, strict=True)) for fields in records if len(fields) == len(names)
    ]
