"""Read the catalog's files, later ones over earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from gcluster.schemas.catalog.machine import Machine
from gcluster.schemas.compose import compose
from gcluster.schemas.diagnostics import Diagnostic
from gcluster.schemas.source import decode, read_source
from gcluster.schemas.spec.noun import Noun
from gcluster.schemas.structure import fit

_MACHINES = Path(__file__).parent / "machines"


class MachineFile(Noun, frozen=True):
    """A file of the catalog."""

    api_version: Literal["gcluster/catalog/v1"] = msgspec.field(name="apiVersion")
    machines: list[Machine]


class CatalogError(Exception):
    """A catalog file is wrong; `diagnostics` say what and where."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        """Hold the findings; the message is the first summary."""
        super().__init__(diagnostics[0].summary if diagnostics else "catalog error")
        self.diagnostics = diagnostics


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """Machine types by name."""

    machines: Mapping[str, Machine]


def load_catalog(extra: Sequence[Path] = ()) -> Catalog:
    """Return the catalog that comes with gcluster, with a user's own files over it.

    Args:
        extra: more machine files; a machine type of the same name replaces the earlier one.

    Raises:
        CatalogError: a file can't be read or is wrong.
    """
    machines = dict(_own_machines())
    for path in extra:
        machines.update((machine.name, machine) for machine in _read(path).machines)
    return Catalog(machines=machines)


@lru_cache(maxsize=1)
def _own_machines() -> Mapping[str, Machine]:
    files = sorted(_MACHINES.glob("*.yaml"))
    return {machine.name: machine for path in files for machine in _read(path).machines}


def _read(path: Path) -> MachineFile:
    source = read_source(path)
    text = source if isinstance(source, Diagnostic) else decode(source, file=str(path))
    if isinstance(text, Diagnostic):
        raise CatalogError(text)
    composed = compose(text, file=str(path))
    if composed.document is None:
        raise CatalogError(*composed.diagnostics)
    structured = fit(
        MachineFile, composed.document, file=str(path), spoilt=frozenset(composed.broken)
    )
    if not isinstance(structured.value, MachineFile):
        raise CatalogError(*composed.diagnostics, *structured.diagnostics)
    return structured.value
