"""A double of a cloud that lacks machines: no cloud refuses on demand, so this one simulates AWS.

The fallback, the names and the words of the refusals are those of the AWS provider; machines are a
file. What it is set to be out of, it refuses, as EC2 does: node by node, the others come.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.progress import Reporter, silent
from gcluster.lifecycle.planning.changes import Plan
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.planning.purchase.decision import NO_WISHES, OptionOverrides
from gcluster.lifecycle.state import PurchaseAttempted
from gcluster.lifecycle.up.phase import UpResult
from gcluster.lifecycle.up.up import up
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.aws.provider import AwsProvider
from gcluster.stacks.provider import (
    BlockOffering,
    Grown,
    Leftover,
    Provider,
    ProviderError,
    Purchase,
    PurchaseOption,
    Resource,
    ResourceChange,
    ResourceGraph,
    SiteContext,
    SiteOutputs,
)
from gcluster.stacks.pulumi.engine.events import translate
from gcluster.stacks.simulated import stamps

SPOT, NEXT = "spot-use1-az4", "on-demand-use1-az4"
"""Keys of the options that the spec begins with."""
NODES = ["gpu001", "gpu002"]
EC2_MESSAGE = (
    "creating EC2 Instance: InsufficientInstanceCapacity: We currently do not have sufficient "
    "p5.48xlarge capacity in the Availability Zone you requested (us-east-1d)"
)

SPEC = """\
apiVersion: gcluster/v1
name: progress
sites:
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {{admin_cidrs: [192.0.2.0/24]}}
pools:
  head: {{site: east, role: controller, machine: m7i.4xlarge, public_address: true}}
  gpu: {{site: east, machine: p5.48xlarge, count: {count}, market: [{market}]{pool}}}
scheduler: {{type: slurm}}
{more}
"""


class CloudDouble(Provider):
    """The provider contract, as far as `up` needs it; nothing is installed on its hosts."""

    name = "simulated"
    has_purchase_options = True

    def __init__(self, folder: Path) -> None:
        """Keep its machines in a folder, as a cloud keeps them outside of any process."""
        self._path = folder / "machines.json"
        self._lock = threading.Lock()
        self._aws = AwsProvider()
        self.stock: dict[str, int] = {}
        """Option -> machines that it has left; absent: enough of them."""
        self.bought: list[str] = []
        """Options whose capacity block was paid."""
        self.on_offer: BlockOffering | None = BlockOffering(
            id="cb-0abc", zone="use1-az4", starts="", ends="", usd=2641.92, price="2641.92 USD"
        )
        self.offered: list[tuple[str, str]] = []
        """(pool, option) that were queried."""
        self.message_of: Callable[[str], str] = lambda _: EC2_MESSAGE
        self.before_each: Callable[[], None] = lambda: None
        """Called before each machine is made: where a process may be killed."""
        self.calls: list[dict[str, str]] = []
        """What each apply was attempts_text: node -> option."""
        self.systems: dict[str, str] = {}
        """Storage -> what is mounted of it, from the first machine on."""
        self.most = 0.0
        """USD/h of the machines that ever existed at once."""

    @property
    def machines(self) -> dict[str, str]:
        """Node -> option, of those that exist."""
        return json.loads(self._path.read_bytes()) if self._path.exists() else {}

    def on(self, option: str) -> list[str]:
        """Return the GPU nodes that exist on an option."""
        there = self.machines.items()
        return sorted(node for node, at in there if at == option and node.startswith("gpu"))

    def purchase_options(
        self, spec: ClusterSpec, site: str, pool: str
    ) -> tuple[PurchaseOption, ...]:
        """Return AWS's own fallback list."""
        return self._aws.purchase_options(spec, site, pool)

    def block_offering(self, _: SiteContext, pool: str, option: str) -> BlockOffering | None:
        """Offer what `on_offer` says."""
        self.offered.append((pool, option))
        return self.on_offer

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return AWS's own names."""
        return self._aws.purchases(spec, site)

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the nodes."""
        nodes = tuple(
            Resource(kind="node", name=host.name, pool=host.pool)
            for host in self.planned_hosts(spec, site)
        )
        return ResourceGraph(site=site, provider="aws", resources=nodes)

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return what the spec requests, whatever can be had."""
        return tuple(_simulated(host) for host in self._aws.planned_hosts(spec, site))

    def outputs(self, _: SiteContext) -> SiteOutputs:
        """Return what was made with the machines."""
        return SiteOutputs(file_systems=self.systems if self.machines else {})

    def preflight(self, _: SiteContext) -> tuple[()]:
        """Find nothing."""
        return ()

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Compare what is there with what was taken."""
        there = self.machines
        found = []
        for wanted in self.graph(context.spec, context.site).resources:
            option, now = self._option(context, wanted), there.get(wanted.name, "")
            if option != now:
                effect: Any = "create" if not now else "replace" if option else "delete"
                found.append(ResourceChange(effect=effect, resource=wanted))
        return tuple(found)

    def apply(self, context: SiteContext) -> None:
        """Make it so, node by node; what is on another option goes first."""
        self.calls.append(dict(context.purchased))
        offers = {
            p: self.purchase_options(context.spec, context.site, p) for p in context.spec.pools
        }
        lacking = {}
        for wanted in self.graph(context.spec, context.site).resources:
            option, now = self._option(context, wanted), self.machines.get(wanted.name, "")
            if option == now:
                continue
            if now:
                self._set(wanted.name, "")
            if not option:
                continue
            self.before_each()
            offer = next(o for o in offers[wanted.pool or ""] if o.key == option)
            if offer.buy_hours is not None and option not in self.bought:
                assert wanted.pool in context.buys, "nobody asked for this purchase"
                assert context.offerings[f"{wanted.pool}/{option}"] == "cb-0abc", (
                    "no plan showed it"
                )
                self.bought.append(option)
            if self.stock.get(option, 1) <= 0:
                name = f"progress-{context.site}-{wanted.name}"
                lacking[name] = translate(self.message_of(option), resource=f"Instance {name}")
                continue
            if option in self.stock:
                self.stock[option] -= 1
            self._set(wanted.name, option)
            self.most = max(self.most, self._cost(context, offers))
        if lacking:
            raise ProviderError(*lacking.values(), lacking=lacking)

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return what exists."""
        there = self.machines
        return tuple(
            host for host in self.planned_hosts(context.spec, context.site) if host.name in there
        )

    def sweep(self, _: SiteContext) -> tuple[Leftover, ...]:
        """Return what exists."""
        return tuple(Leftover(kind="node", name=n, provider_id=n) for n in sorted(self.machines))

    def destroy(self, _: SiteContext) -> None:
        """End all."""
        self.put({})

    def kept_stamps(self, context: SiteContext, hosts: Iterable[str]) -> Mapping[str, Any]:
        """Read them where simulated sites keep theirs."""
        stored = stamps.read_stamps(context)
        return {host: stored.get(host, {}) for host in hosts}

    def keep_stamps(self, context: SiteContext, done: Mapping[str, Mapping[str, str]]) -> None:
        """Write them there."""
        stamps.write_stamps(context, done)

    def grow(self, *_: object) -> Grown:
        """Refuse: no pool here is elastic."""
        raise NotImplementedError

    def shrink(self, *_: object) -> None:
        """Refuse, as `grow`."""
        raise NotImplementedError

    def _option(self, context: SiteContext, wanted: Resource) -> str:
        first = self.purchase_options(context.spec, context.site, wanted.pool or "")[0].key
        return context.purchased.get(wanted.name, first)

    def put(self, machines: Mapping[str, str]) -> None:
        """Let exactly these machines exist: node -> option."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(dict(machines)))
        new.replace(self._path)

    def _set(self, node: str, option: str) -> None:
        """Let one machine exist on an option, or none; sites are applied at the same time."""
        with self._lock:
            there = {n: r for n, r in self.machines.items() if n != node}
            self.put({**there, node: option} if option else there)

    def _cost(
        self, context: SiteContext, offers: Mapping[str, tuple[PurchaseOption, ...]]
    ) -> float:
        rates: dict[tuple[str | None, str], float] = {
            (p, o.key): o.usd_per_hour or 0.0 for p, found in offers.items() for o in found
        }
        pools = {h.name: h.pool for h in self.planned_hosts(context.spec, context.site)}
        there = self.machines.items()
        return sum(rates.get((pools.get(node), option), 0.0) for node, option in there)


def _simulated(host: Host) -> Host:
    return Host(
        name=host.name,
        site=host.site,
        pool=host.pool,
        role=host.role,
        machine=host.machine,
        ssh=SshTarget(user="nobody"),
        connection="simulated",
    )


class PurchaseScenario:
    """A cluster on the double, driven as the command line drives one."""

    def __init__(self, folder: Path) -> None:
        """Describe two nodes on spot, else on demand."""
        self.folder = folder
        self.cloud = CloudDouble(folder / "cloud")
        self.shown: Plan | None = None
        """The plan that was last confirmed."""
        self.write()

    def write(
        self, market: str = "spot, on-demand", *, count: int = 2, pool: str = "", more: str = ""
    ) -> None:
        """Write the spec; `pool` is further keys of the pool with a comma in front."""
        self.text = SPEC.format(market=market, count=count, pool=pool, more=more)

    def open(self) -> Cluster:
        """Open the cluster again, as another process would."""
        loaded = load_text(self.text, file="cluster.yaml")
        assert loaded.spec is not None, loaded.diagnostics
        return Cluster(
            spec=loaded.spec,
            text=self.text,
            spec_path=self.folder / "cluster.yaml",
            state_url=f"file://{self.folder}/state",
        )

    def up(
        self, report: Reporter = silent, wishes: OptionOverrides = NO_WISHES, allow: str = ""
    ) -> UpResult:
        """Bring it up."""

        def confirm(plan: Plan) -> bool:
            self.shown = plan
            return True

        return up(
            self.open(),
            report,
            confirm=confirm,
            wishes=wishes,
            allow=frozenset(allow.split()),
        )

    def steps(self) -> list[tuple[str, str, str]]:
        """Return (option, outcome, nodes) of every step that the pool's progress has made."""
        bodies = (event.body for event in self.open().events.read())
        return [
            (body.option, body.outcome, body.nodes)
            for body in bodies
            if isinstance(body, PurchaseAttempted) and body.pool == "gpu"
        ]

    def plan(self) -> Any:
        """Return the plan of now."""
        return make_plan(self.open())


class Killed(BaseException):
    """What is raised where a process would be killed."""


def kill_at(purchase: PurchaseScenario, number: int) -> None:
    """Let the process die before it makes its n-th machine from now on, once."""
    steps = count(1)

    def step() -> None:
        if next(steps) == number:
            raise Killed

    purchase.cloud.before_each = step
