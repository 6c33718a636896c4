"""A spec to start from: the template of a provider, filled in from the catalog."""

from __future__ import annotations

from pathlib import Path

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ....lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ....schemas.catalog import Catalog, load_catalog
from ....schemas.catalog.model.machine import Machine
from ....schemas.diagnostics import closest, listing

TEMPLATES = Path(__file__).parents[2] / "spec" / "templates"

DEFAULTS = {
    "local": "sim.h100x8",
    "bare-metal": "hgx-h100-8",
    "ssh-fleet": "hgx-h100-8",
    "aws": "p5.48xlarge",
    "gcp": "a3-megagpu-8g",
    "azure": "Standard_ND96isr_H100_v5",
    "oci": "BM.GPU.H100.8",
}
"""Provider -> the machine of its template: one that many have, and that was bought on demand."""
NO_REGION = frozenset({"local", "bare-metal", "ssh-fleet"})
"""Providers whose machines are where they are."""
MOST_NODES = 200
"""Nodes of a first spec: the made-up addresses of hosts end there."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says of the cluster; what is left out comes from the catalog."""

    provider: str
    name: str
    machine: str = ""
    nodes: int = 4
    region: str = ""


def starter_spec(wish: Wish) -> str:
    """Return a commented spec that validates.

    Raises:
        LifecycleError: GC946, the provider has no such machine or region.
    """
    catalog = load_catalog()
    machine = _machine(wish, catalog)
    region, zone = _place(wish, machine, catalog)
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  # YAML, of names that were checked
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template(f"{wish.provider}.yaml.j2").render(
        name=wish.name,
        machine=machine.name,
        fabric=machine.fabric or "",
        gpus="" if machine.gpu is None else f"{machine.gpu.count} {machine.gpu.model}",
        nodes=wish.nodes,
        region=region,
        zone=zone,
        market=_market(machine),
        held="reservation" if "reservation" in (machine.markets or ()) else "capacity_block",
    )


def _machine(wish: Wish, catalog: Catalog) -> Machine:
    requested = wish.machine or DEFAULTS[wish.provider]
    here = machines_of(wish.provider, catalog)
    if requested in here:
        return catalog.machines[requested]
    question = f'did you mean "{near}"? ' if (near := closest(requested, here)) else ""
    raise _no(f'{wish.provider} has no machine "{requested}"', f"{question}known: {listing(here)}")


def machines_of(provider: str, catalog: Catalog) -> list[str]:
    """Return the machines with GPUs that a provider's site may have, by name."""
    word = {"ssh-fleet": "bare-metal"}.get(provider, provider)
    return sorted(
        name
        for name, machine in catalog.machines.items()
        if machine.gpu is not None and word in machine.sites
    )


def _place(wish: Wish, machine: Machine, catalog: Catalog) -> tuple[str, str]:
    """Return region and zone: where the catalog has the machine, and its price if it can."""
    facts = catalog.providers.get(wish.provider)
    if facts is None or not facts.regions:
        return "", ""
    zones = {region.name: region.zones for region in facts.regions}
    if wish.region and wish.region not in zones:
        near = closest(wish.region, zones)
        hint = f'did you mean "{near}"?' if near else f"known: {listing(zones)}"
        raise _no(f'{wish.provider} has no region "{wish.region}"', hint)
    offered = [
        (region, zone)
        for region, known in zones.items()
        for zone in known
        if {zone, f"{region}-{zone}"} & {*(machine.zones or ())}
    ]
    priced = [price.region for price in machine.prices if price.region in zones]
    best = [region for region in priced if region in {r for r, _ in offered}]
    likely = [*best, *(region for region, _ in offered), *priced, *zones]
    region = wish.region or likely[0]
    here = [zone for known, zone in offered if known == region]
    return region, next(iter(here or zones[region]), "")


def _market(machine: Machine) -> str:
    """Return how to buy a machine at once, as `market` says it; "": with a reservation alone."""
    markets = machine.markets or ["on-demand"]
    return next((market for market in markets if market in {"on-demand", "flex-start"}), "")


def _no(summary: str, hint: str) -> LifecycleError:
    return failure("GC946", summary, hint=hint, exit_code=Exit.USAGE)
