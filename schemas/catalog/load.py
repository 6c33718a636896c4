"""The catalog: gcluster's own files, each read when something in it is needed, and a user's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar, cast

import msgspec

from ..diagnostics import Diagnostic
from ..spec.model import SpecModel
from ..spec.units import decode_quantity
from ..structure.compose import compose
from ..structure.decoding import convert
from ..structure.fit import fit
from ..structure.source import decode, read_source
from .model.fabric import Fabric
from .model.family import Family, family_of
from .model.machine import Machine
from .model.provider import ProviderFacts
from .model.source import Addon, ArtefactSource

_HERE = Path(__file__).parent
_AnyEntry: TypeAlias = Machine | Family | Fabric | ProviderFacts | ArtefactSource | Addon
_Entry = TypeVar("_Entry", bound=_AnyEntry)


class CatalogFile(SpecModel, frozen=True):
    """A file of the catalog: machine types, fabric classes, providers, sources, add-ons."""

    api_version: Literal["gcluster/catalog/v1"] = msgspec.field(name="apiVersion")
    """Version of the catalog's format."""
    machines: list[Machine] = msgspec.field(default_factory=list)
    """Machine types."""
    families: list[Family] = msgspec.field(default_factory=list)
    """Families of CPU machines, whose sizes are machine types by a rule."""
    fabrics: list[Fabric] = msgspec.field(default_factory=list)
    """Fabric classes."""
    providers: list[ProviderFacts] = msgspec.field(default_factory=list)
    """Providers: regions, reserved networks, storage steps, terms."""
    sources: list[ArtefactSource] = msgspec.field(default_factory=list)
    """Artefact sources: where packages and files come from."""
    addons: list[Addon] = msgspec.field(default_factory=list)
    """Add-ons of Kubernetes: charts and manifests."""


class CatalogError(Exception):
    """A catalog file is wrong; `diagnostics` say what and where."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        """Hold the findings; the message is the first summary."""
        super().__init__(diagnostics[0].summary if diagnostics else "catalog error")
        self.diagnostics = diagnostics


class Entries(Mapping[str, _Entry], Generic[_Entry]):
    """Entries by name. gcluster's own are one a file, named after it, and read on first use."""

    def __init__(self, kind: str, over: Mapping[str, _Entry]) -> None:
        """Know the names under the folder `kind`; entries of `over` precede them."""
        self._kind = kind
        self._over = over

    @property
    def _files(self) -> Mapping[str, Path]:
        return _own_files(self._kind)

    def __getitem__(self, name: str) -> _Entry:
        """Return the entry; KeyError when there is none."""
        if name in self._over:
            return self._over[name]
        return cast("_Entry", _own_entry(self._kind, self._files[name]))

    def __contains__(self, name: object) -> bool:
        """Say whether there is such an entry, without reading it."""
        return name in self._over or name in self._files

    def __iter__(self) -> Iterator[str]:
        """Yield the names in order."""
        return iter(sorted({*self._files, *self._over}))

    def __len__(self) -> int:
        """Count the entries."""
        return len({*self._files, *self._over})


class Machines(Entries[Machine]):
    """Machine types by name: those with an entry of their own, and the sizes of families.

    Only the former are listed; a family has dozens of sizes.
    """

    def __init__(self, over: Mapping[str, Machine], families: Mapping[str, Family]) -> None:
        """Know the entries, and the families for names that have none."""
        super().__init__("machines", over)
        self._families = families

    def __getitem__(self, name: str) -> Machine:
        """Return the machine type; KeyError when there is none."""
        if super().__contains__(name):
            return super().__getitem__(name)
        found = self._of_family(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        """Say whether there is such a type; a family's file is read for it."""
        return super().__contains__(name) or self._of_family(name) is not None

    def _of_family(self, name: object) -> Machine | None:
        family = self._families.get(family_of(name) or "") if isinstance(name, str) else None
        return None if family is None else family.machine(str(name))


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of machine types, fabric classes, providers, sources and add-ons, by name."""

    machines: Mapping[str, Machine]
    families: Mapping[str, Family] = msgspec.field(default_factory=dict)
    fabrics: Mapping[str, Fabric] = msgspec.field(default_factory=dict)
    providers: Mapping[str, ProviderFacts] = msgspec.field(default_factory=dict)
    sources: Mapping[str, ArtefactSource] = msgspec.field(default_factory=dict)
    addons: Mapping[str, Addon] = msgspec.field(default_factory=dict)
    complete: bool = True
    """Whether every file that was named could be read: else an unknown name may be in one."""


def load_catalog(
    extra: Sequence[Path] = (), *, contents: Mapping[str, bytes] | None = None
) -> Catalog:
    """Return the catalog that comes with gcluster, with a user's own files over it.

    Args:
        extra: more files; an entry of the same kind and name replaces the earlier one.
        contents: what was in such files, by a name for errors, where it is at hand already. A
            state may keep them from a version that didn't require a machine's processor.

    Raises:
        CatalogError: a file of the user's can't be read or is wrong.
    """
    files = [_read(path) for path in extra]
    files += [_parse(content, name, kept=True) for name, content in (contents or {}).items()]
    families = Entries("families", {f.name: f for file in files for f in file.families})
    return Catalog(
        machines=Machines({m.name: m for file in files for m in file.machines}, families),
        families=families,
        fabrics=Entries("fabrics", {f.name: f for file in files for f in file.fabrics}),
        providers=Entries("providers", {p.name: p for file in files for p in file.providers}),
        sources=Entries("sources", {s.name: s for file in files for s in file.sources}),
        addons=Entries("addons", {a.name: a for file in files for a in file.addons}),
    )


@lru_cache(maxsize=8)
def _own_files(kind: str) -> Mapping[str, Path]:
    """Return the files of a kind by the name of their entry; machines are in folders."""
    return {path.name.removesuffix(".yaml"): path for path in (_HERE / kind).rglob("*.yaml")}


_KINDS: Mapping[str, type[_AnyEntry]] = {
    "machines": Machine,
    "families": Family,
    "fabrics": Fabric,
    "providers": ProviderFacts,
    "sources": ArtefactSource,
    "addons": Addon,
}


@lru_cache(maxsize=512)
def _own_entry(kind: str, path: Path) -> _AnyEntry:
    """Return the entry of a file that comes with gcluster; the tests hold these files to be right.

    It is typed alone: with a whole `CatalogFile` each command would learn all six kinds for one.
    """
    composed = compose(path.read_text(encoding="utf-8"), file=str(path))
    if composed.document is None or composed.diagnostics:
        raise CatalogError(*composed.diagnostics)
    (entry,) = composed.document.data[kind]
    return convert(entry, _KINDS[kind], dec_hook=decode_quantity)


def _read(path: Path) -> CatalogFile:
    source = read_source(path)
    if isinstance(source, Diagnostic):
        raise CatalogError(source)
    return _parse(source, str(path))


def _parse(content: bytes, file: str, *, kept: bool = False) -> CatalogFile:
    text = decode(content, file=file)
    if isinstance(text, Diagnostic):
        raise CatalogError(text)
    composed = compose(text, file=file)
    if composed.document is None:
        raise CatalogError(*composed.diagnostics)
    if kept:
        _fill_in(composed.document.data)
    structured = fit(CatalogFile, composed.document, file=file, spoilt=frozenset(composed.broken))
    if not isinstance(structured.value, CatalogFile):
        raise CatalogError(*composed.diagnostics, *structured.diagnostics)
    return structured.value


def _fill_in(data: object) -> None:
    """Give machines of before 2026-11 the processor that they were compiled for then."""
    machines = data.get("machines") if isinstance(data, dict) else None
    for machine in machines if isinstance(machines, list) else ():
        if isinstance(machine, dict):
            machine.setdefault("cpu", {"architecture": "x86_64"})
