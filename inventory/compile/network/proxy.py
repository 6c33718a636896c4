"""The role proxy: the way out of a site whose nodes reach the outside through a proxy."""

from __future__ import annotations

from ....schemas.derived.links import networks_of_sites
from ....schemas.spec import KubernetesScheduler
from ....schemas.spec.sites import Proxy
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step

_NEAR = ("localhost", "127.0.0.1", "::1", "169.254.169.254", "metadata.google.internal")
"""The node itself, and the clouds' metadata services."""
_PODS = (".svc", ".cluster.local")


def proxy_of(node: NodeFacts) -> Proxy | None:
    """Return the proxy of a pool's site; None: its nodes reach the outside themselves."""
    found: Proxy | None = getattr(node.spec.sites[node.pool.site], "proxy", None)
    return found


def exceptions(node: NodeFacts, proxy: Proxy) -> list[str]:
    """Return what a pool's nodes reach without their proxy, each once.

    Those are the networks of all sites, controllers and logins, the pods' and services' networks,
    and the spec's own entries.
    """
    scheduler = node.spec.scheduler
    known = [*_NEAR, *networks_of_sites(node.spec, node.spec.sites)]
    for host in node.cluster.found_by_name:
        known += [host.name, host.address]
    if isinstance(scheduler, KubernetesScheduler):
        known += [scheduler.pod_cidr, scheduler.service_cidr, *_PODS]
    return [each for each in dict.fromkeys([*known, *proxy.no_proxy]) if each]


def proxy_environment(node: NodeFacts) -> dict[str, str]:
    """Return what the tasks on a pool's nodes find in their environment; {} without a proxy."""
    proxy = proxy_of(node)
    if proxy is None:
        return {}
    near = ",".join(exceptions(node, proxy))
    lower = {"http_proxy": proxy.https, "https_proxy": proxy.https, "no_proxy": near}
    return lower | {name.upper(): value for name, value in lower.items()}


@role_compiler("proxy", removed=True)
def proxy_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role proxy, before any that fetches something; none without a proxy."""
    proxy = proxy_of(node)
    if proxy is None:
        return []
    variables: dict[str, Json] = {
        "proxy_url": proxy.https,
        "proxy_exceptions": exceptions(node, proxy),
    }
    phases: tuple[Phase, ...] = ("configure", "verify")
    return [
        Step(stage=Stage.BASE, role="proxy", phase=phase, variables=variables, spares_jobs=True)
        for phase in phases
    ]
