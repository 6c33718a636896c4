"""Cost and power: known where the catalog knows, None where it does not."""

from __future__ import annotations

from pathlib import Path

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.cost import Cost, usd_per_hour
from gcluster.schemas.load import load_text

_BARE_METAL = """\
apiVersion: gcluster/v1
name: demo
sites: {room: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: room, role: controller, machine: MACHINE, hosts: head01}
  train: {site: room, machine: dgx-h100, hosts: ["gpu[01-04]", {name: gpu05}]}
scheduler: {type: slurm}
"""


def _cost(text: str, *extra: Path) -> Cost:
    catalog = load_catalog(extra)
    spec = load_text(text, catalog=catalog).spec
    assert spec is not None
    return usd_per_hour(spec, catalog)


def test_nodes_on_this_machine_cost_nothing() -> None:
    cost = _cost(
        "apiVersion: gcluster/v1\nname: demo\nsites: {here: {provider: local}}\n"
        "pools: {head: {site: here, role: controller},"
        " gpu: {site: here, machine: sim.h100x8, count: 4}}\nscheduler: {type: slurm}\n"
    )

    assert cost.usd_per_hour == 0
    assert cost.unpriced == ()
    assert (cost.pools["head"].count, cost.pools["gpu"].count) == (1, 4)


def test_an_unknown_price_is_said_and_never_zero() -> None:
    cost = _cost(_BARE_METAL.replace("machine: MACHINE, ", ""))

    assert cost.usd_per_hour is None
    assert cost.unpriced == ("head", "train")
    assert cost.pools["train"].count == 5
    assert cost.pools["train"].watts == 5 * 10_200
    assert cost.watts is None


def test_a_price_of_ones_own_is_multiplied_by_the_machines(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    entry = (
        "  - {{name: {name}, sites: [bare-metal], source: s, date: 2026-01, power_w: {watts},\n"
        "     price: {{usd_per_hour: {rate}, source: s, date: 2026-01}}}}\n"
    )
    path.write_text(
        "apiVersion: gcluster/catalog/v1\nmachines:\n"
        + entry.format(name="dgx-h100", watts=10_000, rate=20)
        + entry.format(name="small", watts=500, rate=0.5)
    )
    cost = _cost(_BARE_METAL.replace("MACHINE", "small"), path)

    assert cost.usd_per_hour == 100.5
    assert cost.watts == 50_500
