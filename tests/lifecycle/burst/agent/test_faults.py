"""Budgets, fallback lists, slow clouds: what the agent does when a call fails or takes long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.operations.burst.agent.calls import CallPool
from gcluster.lifecycle.operations.burst.agent.ledger import BurstLedger
from gcluster.lifecycle.operations.burst.agent.loop import Agent, is_fault
from gcluster.lifecycle.operations.burst.agent.run import run_agent
from gcluster.lifecycle.operations.burst.agent.setup import elastic_pools, spillings
from gcluster.lifecycle.operations.burst.agent.work import CreateResult, bought_by
from gcluster.lifecycle.operations.burst.lock import LOCK
from gcluster.lifecycle.state import acquire
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

from .controller_double import ControllerState
from .harness import Harness, Inline

CLOUD = """\
apiVersion: gcluster/v1
name: trial
sites:
  lab: {{provider: simulated}}
  cloud: {{provider: aws, region: us-east-1, zone_id: use1-az4, network: {{cidr: 10.44.0.0/16}}}}
pools:
  head: {{site: lab, role: controller}}
  gpu: {{site: lab, machine: hgx-h100-8, count: 2}}
  spill:
    site: cloud
    machine: p5.48xlarge
    count: {{min: 0, max: 4}}
    market: [{spot}, on-demand]
scheduler:
  type: slurm
  partitions:
    train: {{pools: [gpu], default: true, spill: {{to: spill, after: 1m{spill}}}}}
"""


class Cloud:
    """A double of the calls: it refuses options, and can be slow for nodes."""

    def __init__(self, *, refuses: Collection[str] = ()) -> None:
        """Refuse these options."""
        self.refuses = set(refuses)
        self.requests: list[tuple[str, tuple[str, ...]]] = []
        self.there: set[str] = set()
        self.slow: dict[str, threading.Event] = {}
        self.asks: dict[str, float] = {}
        """Option -> its current price in USD per hour."""

    def grow(
        self, _site: str, _pool: str, nodes: Collection[str], option: str, _token: str
    ) -> CreateResult:
        """Make them, late where they are slow."""
        self.requests.append((option, tuple(nodes)))
        for name in nodes:
            if name in self.slow:
                self.slow[name].wait(20)
        if option in self.refuses:
            return CreateResult(refusal=f"no capacity by {option}")
        self.there |= set(nodes)
        return CreateResult(exist=frozenset(nodes))

    def shrink(self, _site: str, nodes: Collection[str]) -> bool:
        """Remove them."""
        self.there -= set(nodes)
        return True

    def price(self, _site: str, _pool: str, option: str) -> float | None:
        """Say what it costs now."""
        return self.asks.get(option)

    def addresses(self, _site: str, nodes: Collection[str]) -> dict[str, str]:
        """Say that all have answered."""
        return dict.fromkeys(nodes, "10.44.0.9")

    def join(self, _site: str, _nodes: Collection[str]) -> dict[str, str]:
        """Say that all are done."""
        return {}


def rented(
    harness: Harness,
    cloud: Cloud,
    *,
    spill: str = "",
    spot: str = "spot",
    call_pool: CallPool | None = None,
) -> Agent:
    """Return an agent of a spec with a priced cloud, and a double in that cloud's place."""
    loaded = load_text(CLOUD.format(spill=spill, spot=spot), check=False)
    assert loaded.spec is not None, loaded.diagnostics
    catalog = load_catalog()
    return Agent(
        pools=elastic_pools(loaded.spec, catalog),
        spills=spillings(loaded.spec, catalog),
        always=(),
        scheduler=harness.controller,
        work=cloud,
        ledger=BurstLedger(harness.cluster().events),
        call_pool=call_pool or Inline(),
        say=harness.events.append,
    )


@pytest.fixture
def harness(own_places: Path) -> Harness:
    return Harness(own_places / "here")


def rounds(agent: Agent, count: int) -> None:
    for _ in range(count):
        agent.round()


def test_what_spot_refuses_is_bought_on_demand(harness: Harness) -> None:
    cloud = Cloud(refuses={"spot"})
    harness.submit("a", partition="spill")

    rounds(rented(harness, cloud), 6)

    assert [option for option, _ in cloud.requests] == ["spot", "on-demand"]
    assert cloud.there == {"spill001"}


def test_a_node_that_never_came_is_bought_by_the_next_option(harness: Harness) -> None:
    cloud = Cloud()
    harness.submit("a", partition="spill", run_s=1e6)

    def mark_silent(answer: ControllerState) -> None:
        answer.mute, answer.resume_timeout = frozenset({"spill001"}), 50
        for name in ("spill002", "spill003", "spill004"):
            answer.nodes[name].state = "down"

    harness.change(mark_silent)

    rounds(rented(harness, cloud), 25)

    assert [option for option, _ in cloud.requests][:2] == ["spot", "on-demand"]


def test_above_its_ceiling_nothing_is_bought_and_the_job_is_reported(harness: Harness) -> None:
    cloud = Cloud()
    harness.submit("a", partition="spill")

    rounds(rented(harness, cloud, spill=", max_usd_per_hour: 1"), 4)

    assert cloud.requests == []
    assert (
        harness.controller.load()
        .jobs["a"]
        .answer.startswith("refused: $0.00/h are rented and it adds")
    )
    assert harness.controller.load().nodes["spill001"].reason.endswith("is $1.00")


def test_a_ceiling_leaves_only_the_options_below_it(harness: Harness) -> None:
    cloud = Cloud(refuses={"spot"})
    harness.submit("a", partition="spill")

    rounds(
        rented(harness, cloud, spill=", max_usd_per_hour: 30", spot="{spot_max_usd_per_hour: 20}"),
        4,
    )

    (requested,) = cloud.requests
    assert requested[0].startswith("spot")


def test_the_second_job_is_refused_where_the_first_filled_the_ceiling(harness: Harness) -> None:
    (pool,) = elastic_pools(_spec(), load_catalog())
    cloud = Cloud(refuses={"spot"})
    agent = rented(harness, cloud, spill=f", max_usd_per_hour: {pool.prices['on-demand'] * 1.5}")
    harness.submit("a", partition="spill", run_s=1e5)
    rounds(agent, 5)
    harness.submit("b", partition="spill", run_s=1e5)

    rounds(agent, 5)

    assert cloud.there == {"spill001"}
    assert harness.controller.load().jobs["b"].answer.startswith("refused: ")


def test_what_a_provider_requests_now_goes_before_the_catalogs_price(harness: Harness) -> None:
    (pool,) = elastic_pools(_spec(), load_catalog())
    usd = pool.prices["on-demand"]
    cloud = Cloud(refuses={"spot"})
    cloud.asks = {"on-demand": usd * 3}
    harness.submit("a", partition="spill")

    rounds(rented(harness, cloud, spill=f", max_usd_per_hour: {usd * 2}"), 5)

    assert [option for option, _ in cloud.requests] == ["spot"]
    assert cloud.there == set()


def test_a_price_below_the_catalogs_opens_no_ceiling(harness: Harness) -> None:
    cloud = Cloud()
    cloud.asks = {"spot": 0.1, "on-demand": 0.1}
    harness.submit("a", partition="spill")

    rounds(rented(harness, cloud, spill=", max_usd_per_hour: 1"), 5)

    assert cloud.requests == []


def test_a_cloud_that_is_slow_holds_up_its_own_nodes_alone(harness: Harness) -> None:
    cloud = Cloud()
    cloud.slow["spill001"] = threading.Event()
    call_pool = CallPool(is_fault=is_fault, on_error=lambda _: None)
    agent = rented(harness, cloud, call_pool=call_pool)
    harness.submit("a", partition="spill", run_s=1e6)
    try:
        agent.round()
        harness.submit("b", partition="spill", run_s=1e6)
        _until(agent, lambda: harness.controller.load().nodes["spill002"].state == "here")
        assert harness.controller.load().nodes["spill001"].state == "coming"
    finally:
        cloud.slow["spill001"].set()
        call_pool.close()
    assert [nodes for _, nodes in cloud.requests] == [("spill001",), ("spill002",)]


def test_a_second_agent_does_not_act(harness: Harness) -> None:
    cluster = harness.cluster()
    cluster.keep_spec()

    with (
        acquire(cluster.store, [LOCK], reason="burst agent"),
        pytest.raises(LifecycleError) as refused,
    ):
        run_agent(str(harness.spec), once=True, interval_s=1, say=harness.events.append)

    assert (refused.value.exit_code, harness.events) == (Exit.LOCKED, [])


def test_a_provider_is_shown_one_way_to_buy_alone() -> None:
    spec = _spec()

    assert bought_by(spec, load_catalog(), "spill", "on-demand").pools["spill"].market == [
        "on-demand"
    ]
    assert bought_by(spec, load_catalog(), "gpu", "").pools == spec.pools


def _spec() -> ClusterSpec:
    loaded = load_text(CLOUD.format(spill="", spot="spot"), check=False)
    assert loaded.spec is not None
    return loaded.spec


def _until(agent: Agent, holds: Callable[[], bool]) -> None:
    """Have rounds until something holds; a test that waits in vain fails."""
    for _ in range(400):
        agent.round()
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError
