"""The hosts of a cluster that exist now."""

from __future__ import annotations

from ...inventory.hosts import ClusterInventory, Host
from ...schemas.derived.control_planes import managed_by
from ..kubernetes.managed import nodes
from .cluster import Cluster
from .open_site import OpenSite, at_each, inventory, site_outputs
from .outcome import LifecycleError, failure
from .sites import open_sites


def existing_hosts(cluster: Cluster, *, may_be_none: bool = False) -> ClusterInventory:
    """Return the hosts that exist now, over all sites.

    Raises:
        LifecycleError: there are none (GC908), and there must be some; or a cloud runs their
            control plane and its API gives no answer (GC1043).
    """
    sites = open_sites(cluster)
    per_site = at_each(sites, lambda site: site.provider.hosts(site.context))
    found = [host for hosts in per_site.values() for host in hosts]
    everyone = [*found, *_managed(cluster, sites)]
    hosts = inventory(cluster.spec, everyone, site_outputs(sites))
    if not hosts.hosts and not may_be_none:
        hint = f"gcluster up {cluster.spec_path}"
        raise failure("GC908", f"{cluster.name} has no nodes", hint=hint)
    return hosts


def _managed(cluster: Cluster, sites: tuple[OpenSite, ...]) -> tuple[Host, ...]:
    """Return the nodes that a cloud's control plane runs."""
    spec = cluster.spec
    if managed_by(spec) is None:
        return ()
    seen = nodes.see(spec, sites, cluster.workdir)
    if seen.problem:
        raise LifecycleError(nodes.silence(spec, seen.problem))
    planned = [h for site in sites for h in site.provider.planned_hosts(spec, site.name)]
    return nodes.with_managed_nodes(spec, planned, seen.nodes)[1]
