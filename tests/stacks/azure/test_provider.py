"""The provider contract on Azure, as far as it goes without the engine."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.stacks.ledger_double import RecordingLedger

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.azure.cloud_init import cloud_init
from gcluster.stacks.azure.leftovers import leftovers
from gcluster.stacks.azure.offers import offers
from gcluster.stacks.azure.plan.layout import site_plan
from gcluster.stacks.azure.provider import AzureProvider
from gcluster.stacks.azure.session import Session
from gcluster.stacks.provider import (
    Provider,
    ProviderError,
    SiteContext,
    SiteEvent,
    provider_error,
)

from .azure_double import GROUP, HTTP, AzureDouble
from .recorded_cases import MACHINES, spec_of
from .test_hosts import HEAD, SET, azure  # noqa: F401  # a fixture

ELASTIC = "Standard_ND96isr_H100_v5"
CATALOG = load_catalog()
PLAN = site_plan(spec_of(ELASTIC), "east", CATALOG)
TOKEN = "burst-1"  # noqa: S105  # an id


class OverDouble(AzureProvider):
    """The provider, with the double instead of Azure."""

    def __init__(self, double: AzureDouble) -> None:
        """Send requests to `double`."""
        super().__init__()
        self.double = double

    def _session(self, context: SiteContext) -> Session:
        return Session(context, CATALOG, self.double.api())


@pytest.fixture
def context(tmp_path: Path) -> SiteContext:
    events: list[SiteEvent] = []
    return SiteContext(
        spec=spec_of(ELASTIC),
        site="east",
        cluster_id="c1",
        workdir=tmp_path,
        cache=tmp_path,
        ledger=RecordingLedger(),
        emit=events.append,
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_the_graph_is_the_same_twice_and_names_are_unique(machine: str) -> None:
    provider: Provider = AzureProvider()
    spec = spec_of(machine)
    [site] = spec.sites
    graph = provider.graph(spec, site)
    assert msgspec.json.encode(graph) == msgspec.json.encode(provider.graph(spec, site))
    keys = [resource.key for resource in graph.resources]
    assert len(keys) == len(set(keys))
    assert b"customData" not in msgspec.json.encode(graph)


def test_planned_hosts_are_those_that_are_always_there() -> None:
    planned = AzureProvider().planned_hosts(spec_of(ELASTIC), "east")
    assert [(h.name, h.role) for h in planned] == [
        ("head", "controller"), ("train001", "compute"), ("train002", "compute"),
    ]  # fmt: skip
    assert {h.address for h in planned} == {""}


def test_growing_is_recorded_as_intended_before_and_as_done_after(
    azure: AzureDouble,  # noqa: F811  # the fixture
    context: SiteContext,
) -> None:
    provider = OverDouble(azure)
    [train] = azure.sets.values()
    train.delete(["1"])
    azure.scripts[f"{SET}/virtualMachines/1"] = azure.scripts[f"{SET}/virtualMachines/0"]
    grown = provider.grow(context, "train", ["train101"], TOKEN)
    [host] = grown.hosts
    assert (host.name, host.address, host.pool) == ("train101", "10.60.0.5", "train")
    assert host.ssh.host_keys
    ledger = context.ledger
    assert isinstance(ledger, RecordingLedger)
    assert set(ledger.existing.values()) == {"1"}
    assert provider.grow(context, "train", ["train101"], TOKEN) == grown
    provider.shrink(context, ["train101"])
    assert ledger.existing == {}


def test_growth_that_fails_leaves_no_open_intent(
    azure: AzureDouble,  # noqa: F811  # the fixture
    context: SiteContext,
) -> None:
    [train] = azure.sets.values()
    train.delete(["1"])
    train.room = 0
    with pytest.raises(ProviderError):
        OverDouble(azure).grow(context, "train", ["train101"], TOKEN)
    ledger = context.ledger
    assert isinstance(ledger, RecordingLedger)
    assert ledger.open == {}
    assert ledger.existing == {}


def test_growth_whose_end_is_not_known_keeps_its_intents(
    azure: AzureDouble,  # noqa: F811  # the fixture
    context: SiteContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(*_: object, **__: object) -> None:
        raise provider_error("GC966", "Azure can't be reached")

    monkeypatch.setattr("gcluster.stacks.azure.elastic._start_machines", cut)
    with pytest.raises(ProviderError):
        OverDouble(azure).grow(context, "train", ["train101"], TOKEN)
    ledger = context.ledger
    assert isinstance(ledger, RecordingLedger)
    assert list(ledger.open) == ["east/node/train101"]


def test_a_node_of_the_spec_is_not_given_back(
    azure: AzureDouble,  # noqa: F811  # the fixture
    context: SiteContext,
) -> None:
    with pytest.raises(ProviderError, match="train001 belongs to the spec"):
        OverDouble(azure).shrink(context, ["train001"])


def test_a_stack_update_gets_what_runs_now(
    azure: AzureDouble,  # noqa: F811  # the fixture
    context: SiteContext,
) -> None:
    live_state = Session(context, CATALOG, azure.api()).live_state()
    assert live_state.live["train"].capacity == 3
    assert live_state.live["train"].tags == {"gcluster-names-0": "train001:0 train002:2"}
    assert live_state.public_key.startswith("ssh-ed25519 ")
    assert live_state.month.endswith("-01")


def test_what_is_left_is_found_by_tags_and_data_is_reported_apart(
    azure: AzureDouble,  # noqa: F811  # the fixture
) -> None:
    tags = {"gcluster-cluster": "research", "gcluster-site": "east"}
    base = GROUP.replace("cluster1a2b3c4d", "base9c8d7e6f")
    names = {"Microsoft.StorageCache/amlFilesystems": "scratch",
             "Microsoft.Network/virtualNetworks": "vnet"}  # fmt: skip
    for kind, name in names.items():
        one = {"id": f"{base}/providers/{kind}/{name}", "name": name, "type": kind, "tags": tags}
        azure.more.append(one)
    found = {item.name: item.kept_data for item in leftovers(azure.api(), PLAN, CATALOG)}
    assert found == {
        "research-east-train1a2b3c4d": False, HEAD.rpartition("/")[2]: False,
        "scratch": True, "vnet": True,
    }  # fmt: skip


def test_a_scale_set_that_is_left_costs_what_all_of_its_machines_do(
    azure: AzureDouble,  # noqa: F811  # the fixture
) -> None:
    price = CATALOG.machines["Standard_ND96isr_H100_v5"].price(region=PLAN.region)
    assert price is not None
    found = {item.name: item.usd_per_hour for item in leftovers(azure.api(), PLAN, CATALOG)}
    assert found["research-east-train1a2b3c4d"] == price.usd_per_hour * 3


def test_offers_are_priced_by_option_and_leave_other_systems_out() -> None:
    answer = json.dumps(json.loads((HTTP / "prices.json").read_text())["body"]).encode()
    spot, on_demand = offers(PLAN, PLAN.pool("train"), lambda _url: answer)
    assert (spot.usd_per_hour, on_demand.usd_per_hour) == (41.5, 98.32)
    assert spot.source == "spot, zone 1: Azure Retail Prices"
    assert spot.available is None


def test_a_price_that_is_not_listed_is_unknown() -> None:
    found = offers(PLAN, PLAN.pool("train"), lambda _url: b'{"Items": []}')
    assert [offer.usd_per_hour for offer in found] == [None, None]


def test_user_data_lets_in_one_key_and_no_password() -> None:
    head, _, body = cloud_init("ops", "ssh-ed25519 AAAA x").partition("\n")
    config = json.loads(body)
    assert head == "#cloud-config"
    [user] = config["users"]
    assert user["ssh_authorized_keys"] == ["ssh-ed25519 AAAA x"]
    assert user["lock_passwd"] is True
    assert config["ssh_pwauth"] is False
    assert config["ssh_deletekeys"] is True
    assert "ssh_keys" not in config, "the machine makes its own host keys"
