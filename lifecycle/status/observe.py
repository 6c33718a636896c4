"""What is there now: the sites' resources, the hosts, and the stamps each node carries."""

from __future__ import annotations

import time

import msgspec

from ...inventory.compile.node import pulls
from ...inventory.hosts import ClusterInventory, Host
from ...schemas.derived.control_planes import managed_by
from ...stacks.provider import ProviderError, Resource, ResourceChange, SiteOutputs
from ..cluster.cluster import Cluster
from ..cluster.open_site import OpenSite, at_each, inventory
from ..kubernetes.managed.leaving import leaving_nodes, surplus
from ..kubernetes.managed.nodes import Seen, see, with_managed_nodes
from ..nodes.converge.stamps import kept_stamps, read_stamps
from ..nodes.ssh import SshSession, Unreachable
from ..operations.gitops.pull.reports import read_reported_stamps
from ..operations.repair.queue import set_aside
from ..planning.changes import SitePlan
from ..planning.job_impact import removed_with


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The world at one moment, as far as it answered."""

    sites: tuple[SitePlan, ...]
    existing: ClusterInventory
    """Hosts that exist, running or not, and are wanted."""
    desired: ClusterInventory
    """Hosts of the spec; those that don't exist yet have no address."""
    stamps: dict[str, dict[str, str]]
    """Host -> step -> digest, for the hosts that answered."""
    unreachable: dict[str, str]
    """Host -> reason, for existing hosts that should have responded."""
    last_lines: dict[str, tuple[str, ...]] = {}
    """Host -> the end of its console or boot log, of those of them that show one."""
    taken_at: float
    """time.monotonic() when it was taken."""
    silent: str = ""
    """Why the API that a cloud runs gave no answer; "" where it did, or no cloud runs one."""
    aside: dict[str, str] = {}
    """Host -> why repair gave it up: wanted, but neither queried nor changed."""
    leaving: dict[str, str] = {}
    """Node of a cloud's control plane -> its pool, of those whose machines the sites would end."""
    surplus: dict[str, int] = {}
    """Pool of one -> how many of its nodes would go, where the cloud chooses which."""
    unwanted: tuple[Host, ...] = ()
    """Hosts that exist and that the spec no longer has."""

    @property
    def age_s(self) -> float:
        """How old this observation is, in seconds."""
        return time.monotonic() - self.taken_at

    @property
    def present(self) -> ClusterInventory:
        """All hosts that exist, wanted or not."""
        return msgspec.structs.replace(self.existing, hosts=(*self.existing.hosts, *self.unwanted))

    def changes(self) -> dict[tuple[str, str], ResourceChange]:
        """Return (site, name of a resource) -> what apply would do to it."""
        return {(s.site, c.resource.name): c for s in self.sites for c in s.changes}


class _SiteView(msgspec.Struct, frozen=True):
    plan: SitePlan
    existing: tuple[Host, ...]
    planned: tuple[Host, ...]
    outputs: SiteOutputs = SiteOutputs()


def _observe_or_assume(site: OpenSite) -> _SiteView:
    """Observe, or where a cloud can't be queried take the spec's whole graph as wanted."""
    try:
        return _observe_site(site)
    except ProviderError as error:
        if not site.context.spec.sites[site.name].is_cloud:
            raise
        spec, name = site.context.spec, site.name
        planned = site.provider.planned_hosts(spec, name)
        resources, why = _desired(site, planned, str(error))
        wanted = tuple(ResourceChange(effect="create", resource=r) for r in resources)
        return _SiteView(
            plan=SitePlan(site=name, provider=site.provider.name, changes=wanted, unobserved=why),
            existing=(),
            planned=planned,
        )


def _desired(
    site: OpenSite, planned: tuple[Host, ...], why: str
) -> tuple[tuple[Resource, ...], str]:
    """Return a site's wanted resources, and why they are not compared with the existing ones.

    Without the cloud's extra only the nodes are known, which need none of it.
    """
    try:
        provider, context = site.provider, site.context
        return provider.graph_as_bought(context).resources, why
    except ProviderError as error:
        diagnostic = error.diagnostics[0]
        nodes = (Resource(kind="node", name=host.name, pool=host.pool) for host in planned)
        return tuple(nodes), f"{diagnostic.summary} (only nodes are shown); {diagnostic.hint}"


def _observe_site(site: OpenSite) -> _SiteView:
    changes = site.provider.preview(site.context)
    return _SiteView(
        plan=SitePlan(site=site.name, provider=site.provider.name, changes=changes),
        existing=site.provider.hosts(site.context),
        planned=site.provider.planned_hosts(site.context.spec, site.name),
        outputs=site.provider.outputs(site.context),
    )


def observe(
    cluster: Cluster,
    sites: tuple[OpenSite, ...],
    session: SshSession,
    *,
    guess: bool = False,
) -> Observation:
    """Query every site and every running node; one SSH exec per node, all in parallel.

    Nodes that converge themselves report their stamps: then only their controller is queried.

    Args:
        cluster: whose sites and nodes.
        sites: its sites, open.
        session: SSH to the nodes.
        guess: a cloud that can't be queried is planned as if nothing existed, and marked so; only
            for plans that are not applied.
    """
    views = at_each(sites, _observe_or_assume if guess else _observe_site)
    outputs = tuple(view.outputs for view in views.values())
    existing = {host.name: host for view in views.values() for host in view.existing}
    desired = [existing.get(h.name, h) for view in views.values() for h in view.planned]
    seen = _seen(cluster, sites, guess=guess)
    leaving, fewer = {}, {}
    if seen is not None:
        leaving = leaving_nodes(sites, {n: v.plan for n, v in views.items()}, seen.nodes)
        fewer = surplus(cluster.spec, desired, seen.nodes)
        run, joined = with_managed_nodes(cluster.spec, desired, seen.nodes, leaving)
        desired, existing = list(run), existing | {host.name: host for host in joined}
    aside = {node: entry.reason for node, entry in set_aside(cluster.spec, cluster.events).items()}
    known = {host.name for host in desired}
    wanted = known - aside.keys()
    touched = {
        change.resource.name
        for view in views.values()
        for change in view.plan.changes
        if change.effect != "keep"
    }
    answering = [h for h in existing.values() if h.name in wanted and h.name not in touched]
    pulled = pulls(cluster.spec, inventory(cluster.spec, desired))
    answers = _stamps(sites, session, answering, pulled=pulled)
    answers |= {h.name: Unreachable(reason=h.silent) for h in answering if h.silent}
    if seen is not None:
        answers |= {
            n.name: {} if n.ready else Unreachable(reason=n.why)
            for n in seen.nodes
            if n.name in existing
        }
    return Observation(
        sites=tuple(_with_missing(cluster, site, views[site.name].plan) for site in sites),
        existing=inventory(
            cluster.spec, (h for h in existing.values() if h.name in wanted), outputs
        ),
        desired=inventory(cluster.spec, desired, outputs),
        stamps={name: a for name, a in answers.items() if not isinstance(a, Unreachable)},
        unreachable={n: a.reason for n, a in answers.items() if isinstance(a, Unreachable)},
        last_lines={h.name: h.last_lines for h in existing.values() if h.last_lines},
        taken_at=time.monotonic(),
        aside=aside,
        silent="" if seen is None else seen.problem,
        leaving=leaving,
        surplus=fewer,
        unwanted=tuple(h for h in existing.values() if h.name not in known),
    )


def _with_missing(cluster: Cluster, site: OpenSite, plan: SitePlan) -> SitePlan:
    found = () if plan.unobserved else removed_with(site, plan.changes, cluster.applied_spec)
    return msgspec.structs.replace(plan, gone=found) if found else plan


def _seen(cluster: Cluster, sites: tuple[OpenSite, ...], *, guess: bool) -> Seen | None:
    """Query a cloud's control plane for its nodes; None where there is none."""
    if managed_by(cluster.spec) is None:
        return None

    try:
        return see(cluster.spec, sites, cluster.workdir)
    except ProviderError as error:
        if not guess:
            raise
        return Seen(problem=str(error))  # the site's plan reports it too


def _stamps(
    sites: tuple[OpenSite, ...], session: SshSession, hosts: list[Host], *, pulled: bool
) -> dict[str, dict[str, str] | Unreachable]:
    read = read_reported_stamps if pulled else read_stamps
    answers = dict(read(session, [h for h in hosts if h.connection == "ssh"]))
    return answers | kept_stamps(sites, hosts)
