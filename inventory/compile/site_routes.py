"""The role site_routes: the ways to other sites on every node, and whether those sites answer.

Bare-metal hosts get routes to their site's gateways. In clouds the network itself has the routes,
and other links than WireGuard's exist already: there only what answers is asked.
"""

from __future__ import annotations

from ...schemas.derived.links import gateway_pool, is_tunnel, ways_out
from ...schemas.spec import ClusterSpec
from ..hosts import Host
from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step


@role_compiler("site_routes", removed=True, after=("wireguard",))
def site_routes_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role site_routes; none where no link joins the pool's site.

    What must answer are controllers and logins of the other sites: a node's variables hold no
    list of compute nodes. Links that exist already are asked first of all (preflight).
    """
    spec, site = node.spec, node.pool.site
    ways = ways_out(spec, site) if spec.links else ()
    if not ways or not spec.sites[site].runs_jobs:
        return []
    found = node.cluster.hosts
    routes: list[Json] = []
    given: list[Json] = []
    built: list[Json] = []
    for way in ways:
        link = spec.links[way.link]
        asked = [_who(host, link.via) for host in found if _is_asked(spec, host, way.sites)]
        if not is_tunnel(link, spec.sites):
            given += asked
            continue
        built += asked
        gateway = gateway_pool(link, site, spec.pools)
        first = next((host for host in found if host.pool == gateway), None)
        if not spec.sites[site].makes_machines and first is not None:
            routes.append(
                {"host": first.name, "gateway": first.address, "networks": list(way.networks)}
            )
    ways_here: dict[str, Json] = {"site_routes_ways": routes}
    steps = [_step("preflight", {"site_routes_given": given})] if given else []
    if routes:
        steps.append(_step("configure", ways_here))
    answers = [*given, *built]
    return [*steps, _step("verify", {**ways_here, "site_routes_answers": answers})]


def _is_asked(spec: ClusterSpec, host: Host, sites: tuple[str, ...]) -> bool:
    return host.site in sites and host.role != "compute" and spec.sites[host.site].runs_jobs


def _who(host: Host, via: str) -> dict[str, Json]:
    return {
        "name": host.name,
        "site": host.site,
        "address": host.address,
        "port": host.ssh.port,
        "via": via,
    }


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(
        stage=Stage.BASE, role="site_routes", phase=phase, variables=variables, spares_jobs=True
    )
