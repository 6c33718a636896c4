"""The options of pools on Azure, and what going to another one changes in the program."""

from __future__ import annotations

from tests.stacks.recorded_graph import Graph

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.azure.plan.purchase import purchase_options, purchases
from gcluster.stacks.azure.plan.types import LivePool, LiveState

from ..graph_comparison import diff
from .recorded_cases import parsed, recorded

FALLBACK_LIST = """
apiVersion: gcluster/v1
name: walked
sites:
  east:
    provider: azure
    subscription: 00000000-0000-0000-0000-000000000000
    region: eastus
    network: {admin_cidrs: [192.0.2.0/24]}
pools:
  head:
    site: east
    role: controller
    machine: Standard_D16s_v5
    zones: ["1", "2"]
    public_address: true
  train:
    site: east
    machine: Standard_ND96isr_H100_v5
    count: 2
    zones: ["1", "2"]
    market: [{spot_max_usd_per_hour: 60}, spot, on-demand]
scheduler: {type: slurm}
software: {distribution: ubuntu-22.04}
"""


def spec() -> ClusterSpec:
    return parsed(FALLBACK_LIST)


def keys(pool: str = "train") -> list[str]:
    return [option.key for option in purchase_options(spec(), "east", pool, load_catalog())]


def on(key: str, *hosts: str) -> LiveState:
    return LiveState(purchased=dict.fromkeys(hosts or ("train001", "train002"), key))


def test_every_option_has_a_key_of_its_own() -> None:
    found = keys()
    assert len(set(found)) == len(found) == 6
    assert found[2:] == ["spot-1", "spot-2", "on-demand-1", "on-demand-2"]


def test_another_market_replaces_the_scale_set_and_nothing_else() -> None:
    found = diff(recorded(spec()), recorded(spec(), live_state=on("on-demand-1")))
    assert (found.added, found.removed) == ((), ())
    [changed] = found.changed
    assert changed.urn.endswith("::walked-east-train")
    assert changed.replaced
    assert set(changed.inputs) == {
        "virtualMachineProfile.billingProfile",
        "virtualMachineProfile.evictionPolicy",
        "virtualMachineProfile.priority",
    }


def test_another_zone_replaces_the_scale_set_and_nothing_else() -> None:
    found = diff(
        recorded(spec(), live_state=on("spot-1")), recorded(spec(), live_state=on("spot-2"))
    )
    [changed] = found.changed
    assert (changed.replaced, changed.inputs) == (True, ("zones[0]",))
    assert (found.added, found.removed) == ((), ())


def test_a_machine_with_a_name_leaves_its_interface_before_it_is_recreated() -> None:
    found = diff(recorded(spec()), recorded(spec(), live_state=on("on-demand-2", "head")))
    changed, address = found.changed
    assert (changed.replaced, changed.inputs) == (True, ("zones[0]",))
    assert "PublicIPAddress" in address.urn  # it is in the machine's zone
    machine = Graph(recorded(spec())).only("VirtualMachine")
    assert machine.options.delete_before_replace


def test_a_pool_that_is_given_up_has_a_scale_set_without_machines() -> None:
    found = diff(recorded(spec()), recorded(spec(), live_state=on("")))
    [changed] = found.changed
    assert changed.inputs == ("sku.capacity",)


def test_machines_that_came_with_the_queue_stay_when_a_fixed_one_is_given_up() -> None:
    one_zone = FALLBACK_LIST.replace(
        'count: 2\n    zones: ["1", "2"]', 'count: 2\n    zones: ["1"]'
    )
    elastic = parsed(one_zone.replace("count: 2", "count: {min: 2, max: 8}"))
    live = {"train": LivePool(capacity=5)}
    live_state = LiveState(live=live, purchased={"train002": ""})
    [made] = Graph(recorded(elastic, live_state=live_state)).of_type("VirtualMachineScaleSet")
    sku = made.inputs["sku"]
    assert isinstance(sku, dict)
    assert sku["capacity"] == 5


def test_compute_pools_report_why_they_can_not_mix_options() -> None:
    catalog = load_catalog()
    assert {r.whole != "" for r in purchase_options(spec(), "east", "train", catalog)} == {True}
    assert {r.whole for r in purchase_options(spec(), "east", "head", catalog)} == {""}


def test_every_machine_of_the_program_is_known_for_what_it_buys() -> None:
    known = purchases(spec(), "east", load_catalog())
    graph = Graph(recorded(spec()))
    [scale_set] = graph.of_type("VirtualMachineScaleSet")
    assert known[scale_set.name].nodes == ("train001", "train002")
    assert known["scale set train"] == known[scale_set.name]
    assert known[graph.only("VirtualMachine").name].nodes == ("head",)
