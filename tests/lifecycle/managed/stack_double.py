"""The double of a stack that makes a control plane of EKS, in front of an API server."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any

from gcluster.inventory.hosts import Host
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.aws.provider import AwsProvider
from gcluster.stacks.provider import (
    ControlPlaneAt,
    Grown,
    Leftover,
    Provider,
    Purchase,
    Resource,
    ResourceChange,
    ResourceGraph,
    SiteContext,
)

NODES = ("ip-10-40-0-11.ec2.internal", "ip-10-40-0-12.ec2.internal")


class StackDouble(Provider):
    """The provider contract over an API server that runs already: apply lets nodes join it."""

    name = "aws"
    has_purchase_options = True
    replaces_nodes = True

    def __init__(self, api: Any, join: Callable[[str, str, str], None]) -> None:
        """Work in front of an API server; `join` makes a node of a pool, of a machine."""
        self._aws, self._api, self._join = AwsProvider(), api, join
        self.stands = False
        self.ended: list[str] = []
        self.made: tuple[str, ...] = ()
        """Machines that the stack has, by the spec's names."""
        self.nodes: dict[str, str] = {}
        """Machine -> name of its node."""
        self.ids: dict[str, str] = {}
        self.recreated = 0
        """How many were recreated."""
        self.waves: list[list[str]] = []
        """Those that were recreated together, by the spec's names."""
        self.out: dict[str, list[str]] = {}
        """Node that went -> what was there as the stack was applied: cordoned, and its pods."""

    def planned_hosts(self, spec: ClusterSpec, site: str) -> tuple[Host, ...]:
        """Return what AWS' provider returns."""
        return self._aws.planned_hosts(spec, site)

    def graph(self, spec: ClusterSpec, site: str) -> ResourceGraph:
        """Return the machines."""
        nodes = (
            Resource(kind="node", name=host.name, pool=host.pool)
            for host in self.planned_hosts(spec, site)
        )
        return ResourceGraph(site=site, provider="aws", resources=tuple(nodes))

    def preflight(self, _: SiteContext) -> tuple[()]:
        """Find nothing."""
        return ()

    def preview(self, context: SiteContext) -> tuple[ResourceChange, ...]:
        """Return all before the stack exists, and nothing afterwards."""
        made = self.graph(context.spec, context.site).resources
        if not self.stands:
            return tuple(ResourceChange(effect="create", resource=one) for one in made)
        wanted = {one.name for one in made}
        return (
            *(
                ResourceChange(effect="create", resource=one)
                for one in made
                if one.name not in self.made
            ),
            *(
                ResourceChange(effect="delete", resource=Resource(kind="Instance", name=name))
                for name in self.made
                if name not in wanted
            ),
        )

    def machine_ids(self, _: SiteContext) -> dict[str, str]:
        """Return the ids of the instances."""
        return {name: self.ids[name] for name in self.made}

    def apply(self, context: SiteContext) -> None:
        """Let the nodes join by the names that AWS gives them, and those go that the spec drops."""
        self.stands = True
        planned = self.planned_hosts(context.spec, context.site)
        wanted = tuple(host.name for host in planned)
        for machine in self.made:
            if machine not in wanted:
                node = self.nodes[machine]
                self.out[node] = self._on(node)
                self._api.kubectl("delete", "node", node)
        for host, name in zip(planned, NODES, strict=False):
            node = self.nodes.setdefault(host.name, name)
            known = self.ids.setdefault(host.name, f"i-{host.name}")
            self._join(node, host.pool, f"aws:///use1-az4/{known}")
        self.made = wanted

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what each machine simulates."""
        planned = self.planned_hosts(spec, site)
        return {host.name: Purchase(pool=host.pool, nodes=(host.name,)) for host in planned}

    def replace(self, context: SiteContext, names: Iterable[str]) -> None:
        """End machines and make them again: their nodes come under other names and ids."""
        pools = {h.name: h.pool for h in self.planned_hosts(context.spec, context.site)}
        self.waves.append([*names])
        for name in self.waves[-1]:
            node = self.nodes[name]
            self.out[node] = self._on(node)
            self._api.kubectl("delete", "node", node)
            self.recreated += 1
            self.nodes[name] = NODES[0].replace("-11.", f"-{20 + self.recreated}.")
            self.ids[name] = f"i-{name}-{self.recreated}"
            self._join(self.nodes[name], pools[name], f"aws:///use1-az4/{self.ids[name]}")

    def _on(self, node: str) -> list[str]:
        cordoned = "--output=jsonpath={.spec.unschedulable}"
        pods = ("--all-namespaces", f"--field-selector=spec.nodeName={node}", "--output=name")
        out = self._api.kubectl("get", "node", node, cordoned).stdout
        return [out, *self._api.kubectl("get", "pods", *pods).stdout.split()]

    def hosts(self, _: SiteContext) -> tuple[()]:
        """Return no machine: these have no login."""
        return ()

    def control_plane(self, _: SiteContext) -> ControlPlaneAt | None:
        """Return the API server, once the stack exists."""
        if not self.stands:
            return None
        authority = (self._api.folder / "pki/apiserver.crt").read_bytes()
        return ControlPlaneAt(
            name="demo-here-eks",
            endpoint=f"https://127.0.0.1:{self._api.port}",
            authority=base64.b64encode(authority).decode(),
            region="us-east-1",
        )

    def sweep(self, context: SiteContext) -> tuple[Leftover, ...]:
        """Return the machines, while the stack exists."""
        if not self.stands:
            return ()
        names = (r.name for r in self.graph(context.spec, context.site).resources)
        return tuple(Leftover(kind="node", name=name, provider_id=name) for name in names)

    def tracked_ids(self, _: SiteContext, found: Iterable[Leftover]) -> frozenset[str]:
        """Return all of it: the stack made it."""
        return frozenset(one.provider_id for one in found)

    def destroy(self, context: SiteContext) -> None:
        """Take it down; observers see what was there then."""
        self.ended.append(context.site)
        self.stands = False

    def grow(self, *_: object) -> Grown:
        """Refuse: no pool here is elastic."""
        raise NotImplementedError

    def shrink(self, *_: object) -> None:
        """Refuse, as `grow`."""
        raise NotImplementedError
