"""The role wireguard: gateways of tunnels between sites, whose keys the cluster's vault makes.

A gateway gets its own private key and the public keys of the gateways beyond its tunnels, as
secrets get to nodes: so one `up` configures both ends of a new tunnel, and no key is read back.
"""

from __future__ import annotations

from ipaddress import ip_address

from ....schemas.derived.links import (
    TUNNEL_PORT,
    gateway_links,
    gateway_pool,
    is_tunnel,
    link_routes,
    networks_of_sites,
    other_end,
    tunnel_mtu,
)
from ....schemas.spec import ClusterSpec
from ....schemas.spec.link import Link
from ...hosts import Host
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step

KEY_PREFIX = "wireguard-key-"
"""Secret wireguard-key-POOL: the private key of the gateway that is the first host of a pool."""
PEERS_PREFIX = "wireguard-peers-"
"""Secret wireguard-peers-POOL.POOL: the public keys of these gateways, as JSON."""
_KEEPALIVE_S = 25
"""Seconds between packets that keep a NAT's entry alive (wg(8), PersistentKeepalive)."""


@role_compiler("wireguard", removed=True, after=("base",))
def wireguard_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role wireguard; none where no host of the pool is a gateway.

    All hosts of the pool get them: the role acts on the one that is named. Jobs don't feel them,
    but what crosses a tunnel that changes waits for seconds.
    """
    spec, pool = node.spec, node.name
    links = gateway_links(spec, pool)
    if not links:
        return []
    by_pool = {name: hosts[0] for name, hosts in node.cluster.by_pool.items() if hosts}
    site = spec.pools[pool].site
    behind = {way.link: way.networks for way in link_routes(spec, site)}
    peers = [_peer(spec, index, pool, by_pool, behind.get(index, ())) for index in links]
    variables: dict[str, Json] = {
        "wireguard_host": by_pool[pool].name if pool in by_pool else "",
        "wireguard_networks": networks_of_sites(spec, [site]),
        "wireguard_port": TUNNEL_PORT,
        "wireguard_mtu": min(tunnel_mtu(spec.links[index], spec.sites) for index in links),
        "wireguard_peers": peers,
    }
    secrets = {
        "wireguard_key_file": f"{KEY_PREFIX}{pool}",
        "wireguard_peer_keys_file": PEERS_PREFIX + ".".join(sorted({p["name"] for p in peers})),
    }
    requested = {key: variables[key] for key in ("wireguard_host", "wireguard_peers")}
    return [
        _wireguard_step("preflight", requested),
        _wireguard_step("install", {}),
        _wireguard_step("configure", variables, secrets),
        _wireguard_step(
            "join", variables, secrets
        ),  # what it was configured with, else it wouldn't run
        _wireguard_step("verify", variables),
    ]


def _wireguard_step(
    phase: Phase, variables: dict[str, Json], secrets: dict[str, str] | None = None
) -> Step:
    return Step(
        stage=Stage.BASE,
        role="wireguard",
        phase=phase,
        variables=variables,
        secrets=secrets or {},
        spares_jobs=True,
    )


def _peer(
    spec: ClusterSpec, index: int, pool: str, by_pool: dict[str, Host], networks: tuple[str, ...]
) -> dict[str, Json]:
    """Return the gateway beyond a link: where it is, and what is sent to it."""
    link = spec.links[index]
    site = spec.pools[pool].site
    beyond = other_end(link, site)
    other = gateway_pool(link, beyond, spec.pools) or ""
    mine, theirs = by_pool.get(pool), by_pool.get(other)
    dialled = _endpoint(spec, link, site, mine, seen_from=beyond)
    return {
        "name": other,
        "site": beyond,
        "address": theirs.address if theirs is not None else "",
        "endpoint": _endpoint(spec, link, beyond, theirs, seen_from=site),
        "networks": list(networks),
        "keepalive": 0 if dialled else _KEEPALIVE_S,
    }


def _endpoint(
    spec: ClusterSpec, link: Link, site: str, host: Host | None, *, seen_from: str
) -> str:
    """Return ADDRESS:PORT of a gateway as the other site reaches it; "": it dials, unreached.

    A cloud reaches no private address of another site.
    """
    endpoint = link.endpoints.get(site)
    if endpoint is not None:
        has_port = ":" in endpoint and not endpoint.endswith("]")
        return endpoint if has_port else f"{endpoint}:{TUNNEL_PORT}"
    if host is None:
        return ""
    address = host.public_address
    if not address:
        ends = (spec.sites[site], spec.sites[seen_from])
        far = any(end.is_cloud for end in ends) and _is_private(host.address)
        address = "" if far else host.address
    if not address:
        return ""
    return f"[{address}]:{TUNNEL_PORT}" if ":" in address else f"{address}:{TUNNEL_PORT}"


def _is_private(address: str) -> bool:
    """Return whether an address is not on the internet; names are not resolved here."""
    try:
        return not ip_address(address).is_global
    except ValueError:
        return False


@role_compiler("site_routes", removed=True, after=("wireguard",))
def site_routes_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role site_routes; none where no link joins the pool's site.

    Checked are controllers and logins of the other sites: a node's variables hold no list of
    compute nodes. Existing links are checked first of all (preflight).
    """
    spec, site = node.spec, node.pool.site
    routes_out = link_routes(spec, site) if spec.links else ()
    if not routes_out or not spec.sites[site].runs_jobs:
        return []
    found = node.cluster.hosts
    routes: list[Json] = []
    given: list[Json] = []
    built: list[Json] = []
    for way in routes_out:
        link = spec.links[way.link]
        requested = [_who(host, link.via) for host in found if _is_requested(spec, host, way.sites)]
        if not is_tunnel(link, spec.sites):
            given += requested
            continue
        built += requested
        gateway = gateway_pool(link, site, spec.pools)
        first = next((host for host in found if host.pool == gateway), None)
        if not spec.sites[site].makes_machines and first is not None:
            routes.append(
                {"host": first.name, "gateway": first.address, "networks": list(way.networks)}
            )
    variables: dict[str, Json] = {"site_routes_ways": routes}
    steps = [_site_routes_step("preflight", {"site_routes_given": given})] if given else []
    if routes:
        steps.append(_site_routes_step("configure", variables))
    answers = [*given, *built]
    return [*steps, _site_routes_step("verify", {**variables, "site_routes_answers": answers})]


def _is_requested(spec: ClusterSpec, host: Host, sites: tuple[str, ...]) -> bool:
    return host.site in sites and host.role != "compute" and spec.sites[host.site].runs_jobs


def _who(host: Host, via: str) -> dict[str, Json]:
    return {
        "name": host.name,
        "site": host.site,
        "address": host.address,
        "port": host.ssh.port,
        "via": via,
    }


def _site_routes_step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(
        stage=Stage.BASE, role="site_routes", phase=phase, variables=variables, spares_jobs=True
    )
