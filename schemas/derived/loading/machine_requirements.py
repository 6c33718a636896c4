"""Machine types that pools say by what they have to have, and the spec with their names in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypedDict

import msgspec

from ...catalog import Catalog, Machine
from ...catalog.selection import MachineFilter, Offer, offers, unknown_words
from ...diagnostics import Diagnostic, PathTuple, Severity, Span, listing
from ...spec import Pool, Site
from ...spec.pool import MachineRequirement
from ...structure.document import Document, Structured
from ...structure.fix.patches import place_of, yaml_text

_MOST_SHOWN = 6


class WithMachines(NamedTuple):
    """A spec, its requirements of machines answered."""

    structured: Structured
    diagnostics: tuple[Diagnostic, ...]
    edits: tuple[tuple[int, int, str], ...]
    """Start, end and what replaces it in the spec's text: `machine: NAME` for each requirement."""


class _At(TypedDict):
    """The place of a finding."""

    path: PathTuple
    file: str
    span: Span | None


class _Refused(NamedTuple):
    """Why no machine type was chosen, and what to write instead."""

    summary: str
    hint: str


def with_machines(
    structured: Structured, document: Document, *, catalog: Catalog, spec: str
) -> WithMachines:
    """Choose the machine types and put their names into the typed pools and into the text.

    The same spec and catalog give the same types. A pool whose requirement has no one answer is
    left without a type, and nothing more is said about what that is.

    Args:
        structured: the typed parts; pools is one of them.
        document: the text.
        catalog: with the spec's own files.
        spec: name of the spec's file, for diagnostics.
    """
    sites: Mapping[str, Site] = structured.parts.get("sites", {})
    pools: dict[str, Pool] = dict(structured.parts["pools"])
    found: list[Diagnostic] = []
    edits: list[tuple[int, int, str]] = []
    unknown: set[PathTuple] = set()
    for name, pool in pools.items():
        wanted: object = pool.machine
        if not isinstance(wanted, MachineRequirement):
            continue
        path: PathTuple = ("pools", name, "machine")
        place = place_of(document, structured.original(path))
        site = sites.get(pool.site)
        chosen: Machine | _Refused | None = None
        if place is None:
            chosen = _Refused("its machine stands behind an alias", "write it in the pool itself")
        elif site is not None:  # an unknown site is reported as that
            chosen = _chosen(catalog, wanted, pool, site)
        at: _At = {"path": path, "file": spec, "span": document.locate(path)}
        if isinstance(chosen, Machine) and place is not None:
            pools[name] = msgspec.structs.replace(pool, machine=chosen.name)
            edits.append((place.start, place.end, f"machine: {yaml_text(chosen.name)}"))
            what = f"{chosen.name} is the one machine type with {_said(wanted)}"
            note = Diagnostic(
                code="GC030",
                severity=Severity.NOTE,
                summary=f'pool "{name}": {what}',
                **at,
            )
            found.append(note)
            continue
        pools[name] = msgspec.structs.replace(pool, machine=None)
        unknown.add(path)
        if isinstance(chosen, _Refused) and catalog.complete:
            error = Diagnostic(
                code="GC029",
                severity=Severity.ERROR,
                summary=f'pool "{name}": {chosen.summary}',
                **at,
                hint=chosen.hint,
            )
            found.append(error)
    value = structured.value
    replaced = msgspec.structs.replace(
        structured,
        parts={**structured.parts, "pools": pools},
        value=None if value is None else msgspec.structs.replace(value, pools=pools),
        spoilt=structured.spoilt | unknown,
    )
    return WithMachines(replaced, tuple(found), tuple(edits))


def _chosen(
    catalog: Catalog, wanted: MachineRequirement, pool: Pool, site: Site
) -> Machine | _Refused:
    """Return the one machine type of the site that fits, or why there is none."""
    wrong = next(unknown_words(catalog, MachineFilter(gpu=wanted.gpu)), None)
    if wrong is not None:
        near = f'did you mean "{wrong.near}"?' if wrong.near else f"one of {listing(wrong.known)}"
        return _Refused(f'no machine type has a GPU called "{wrong.word}"', near)
    region = getattr(site, "region", None)
    where = f"{site.catalog_name} in {region}" if region else site.catalog_name
    of_gpu = list(_offered(catalog, wanted.gpu, site, region))
    if not site.makes_machines:
        what = f"its hosts exist, and {_said(wanted)} doesn't say which machines they are"
        return _Refused(what, f"write one of {_shown(of_gpu, pool)}, or one of your own")
    fitting = [offer for offer in of_gpu if _fits(catalog, offer.machine, wanted, pool)]
    if len(fitting) == 1:
        return fitting[0].machine
    if fitting:
        return _Refused(
            f"{where} has {len(fitting)} machine types with {_said(wanted)}",
            f"say more of it, or write one of {_shown(fitting, pool)}",
        )
    what = f"{where} has no machine type with {_said(wanted)}"
    if of_gpu:
        return _Refused(what, f"of {wanted.gpu} it has {_shown(of_gpu, pool)}")
    places = offers(catalog, MachineFilter(gpu=wanted.gpu))
    elsewhere = sorted({offer.where for offer in places})
    return _Refused(what, f"{wanted.gpu} is at {listing(elsewhere)}")


def _offered(catalog: Catalog, gpu: str, site: Site, region: str | None) -> Iterator[Offer]:
    """Yield the machine types with such GPUs that a site can have, in the order of their names.

    A region of which the catalog knows nothing leaves none out.
    """
    facts = catalog.providers.get(site.catalog_name)
    known = facts is not None and any(each.name == region for each in facts.regions)
    for offer in offers(catalog, MachineFilter(gpu=gpu, region=region if known else None)):
        if site.catalog_name in offer.machine.sites:
            yield offer


def _fits(catalog: Catalog, machine: Machine, wanted: MachineRequirement, pool: Pool) -> bool:
    gpu = machine.gpu
    least = wanted.gpu_memory
    return (
        gpu is not None
        and wanted.per_node in {None, gpu.count}
        and (least is None or gpu.memory_gib * 2**30 >= least.value)
        and wanted.architecture in {None, machine.cpu.architecture}
        and _has_fabric(catalog, machine, wanted.fabric, pool)
    )


def _has_fabric(catalog: Catalog, machine: Machine, wanted: str | None, pool: Pool) -> bool:
    """Say whether a pool of a machine type has the fabric: its own word goes before the type's."""
    if wanted is None:
        return True
    name = pool.fabric or machine.fabric
    fabric = catalog.fabrics.get(name) if name is not None else None
    if wanted == "rdma":
        return fabric is not None and fabric.rdma
    return name == wanted


def _said(wanted: MachineRequirement) -> str:
    """Return a requirement in words: 8 x H100 of 80 GiB over rdma, x86_64."""
    text = wanted.gpu if wanted.per_node is None else f"{wanted.per_node} x {wanted.gpu}"
    if wanted.gpu_memory is not None:
        text += f" of {wanted.gpu_memory} or more"
    if wanted.fabric is not None:
        text += f" over {wanted.fabric}"
    return text if wanted.architecture is None else f"{text}, {wanted.architecture}"


def _shown(found: list[Offer], pool: Pool) -> str:
    """Return machine types with what distinguishes them."""
    shown = [_about(offer, pool) for offer in found[:_MOST_SHOWN]]
    more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    return f"{', '.join(shown)}{more}"


def _about(offer: Offer, pool: Pool) -> str:
    machine = offer.machine
    facts = (
        [] if machine.gpu is None else [f"{machine.gpu.count} of {machine.gpu.memory_gib:g} GiB"]
    )
    fabric = pool.fabric or machine.fabric
    facts.append(fabric or "no fabric class")
    if offer.price is not None:
        facts.append(f"${offer.price.usd_per_hour:,.2f}/h")
    return f"{machine.name} ({', '.join(facts)})"
