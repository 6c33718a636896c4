"""The role hardening: which planes may reach a node's ports, and who logs in."""

from __future__ import annotations

from ...schemas.derived.links import TUNNEL_PORT, gateway_links, networks_of_sites
from ...schemas.spec import BareMetalSite, CloudSite, Hardening, HostEntry
from ...schemas.spec.sites import ListedHost, SshFleetSite
from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

_UNPRIVILEGED = "1024-65535"
"""srun, MPI and NCCL listen where the kernel says; Slurm's own 6817 to 6819 are among them."""
_SERVERS = ["111", "988", _UNPRIVILEGED]
"""What storage servers call back to: rpcbind, LNet's acceptor (988), NFS callbacks."""
_ALL = "1-65535"


@role_compiler("hardening", after=("pam_slurm_adopt",))
def hardening_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role hardening; none where the spec doesn't ask for it.

    It comes last: what it closes has worked by then.
    """
    said = node.spec.hardening
    if said is None:
        return []
    audit: dict[str, Json] = {"hardening_audit": said.audit and node.is_machine}
    ports, users = _ssh(node)
    holds: dict[str, Json] = {
        "hardening_ssh_user": "root" if "root" in users else min(users),
        "hardening_planes": _planes(node, said, ports),
        **audit,
    }
    if not node.is_machine:  # the kernel is another's, and its settings are
        holds["hardening_sysctls"] = {}
    return [_step("install", audit), _step("configure", holds), _step("verify", holds)]


def _planes(node: NodeFacts, said: Hardening, ssh: list[str]) -> list[Json]:
    """Return what may come in from where; nothing without the networks of management."""
    if not said.management:
        return []
    of_sites = networks_of_sites(node.spec, node.spec.sites)
    planes: list[tuple[str, list[str], list[str], list[str]]] = [
        ("management", said.management, ssh, []),
        ("nodes", said.nodes or of_sites, [*ssh, _UNPRIVILEGED], [_UNPRIVILEGED]),
        ("fabric", said.fabric, [_ALL], [_ALL]),
        ("storage", said.storage, _SERVERS, [_UNPRIVILEGED]),
        ("tunnel", _tunnel_ends(node), [], [str(TUNNEL_PORT)]),
    ]
    return [
        {"name": name, "networks": networks, "tcp": _sorted(tcp), "udp": udp}
        for name, networks, tcp, udp in planes
        if networks
    ]


def _tunnel_ends(node: NodeFacts) -> list[str]:
    """Return where a gateway's tunnels may come from: anywhere, since WireGuard answers keys only.

    What comes out of a tunnel is of the nodes' plane, by the networks of the sites.
    """
    return ["0.0.0.0/0"] if gateway_links(node.spec, node.name) else []


def _sorted(ports: list[str]) -> list[str]:
    """Return ports without those that a range beside them holds: nftables refuses overlaps."""
    ranges = [port for port in ports if "-" in port]
    single = {port for port in ports if "-" not in port}
    inside = {
        port
        for port in single
        for low, high in (r.split("-") for r in ranges)
        if int(low) <= int(port) <= int(high)
    }
    return [*sorted(single - inside, key=int), *ranges]


def _ssh(node: NodeFacts) -> tuple[list[str], set[str]]:
    """Return the ports of sshd and the login users of a pool's hosts."""
    site = node.spec.sites[node.pool.site]
    if isinstance(site, BareMetalSite):
        written = node.pool.hosts or []
        entries = [written] if isinstance(written, str) else written
        hosts: list[HostEntry | ListedHost] = [e for e in entries if isinstance(e, HostEntry)]
        hosts += site.listed if isinstance(site, SshFleetSite) else ()
        ports = {site.ssh.port, *(host.port for host in hosts if host.port)}
        users = {site.ssh.user, *(host.user for host in hosts if host.user)}
        return [str(port) for port in sorted(ports)], users
    if isinstance(site, CloudSite):
        return ["22"], {site.ssh.user or "the image's own"}
    return ["22"], {"root"}


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(
        stage=Stage.MONITORING,
        role="hardening",
        phase=phase,
        variables=variables,
        spares_jobs=True,
    )
