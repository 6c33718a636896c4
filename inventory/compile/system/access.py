"""Who logs in and what may be reached: roles sssd, hardening and pam_slurm_adopt."""

from __future__ import annotations

import msgspec

from ....schemas.derived.links import TUNNEL_PORT, gateway_links, networks_of_sites
from ....schemas.derived.storage import mount_point
from ....schemas.spec import (
    BareMetalSite,
    CloudSite,
    ClusterSpec,
    DirectoryUsers,
    Hardening,
    HostEntry,
    SlurmScheduler,
)
from ....schemas.spec.sites import ListedHost, SshFleetSite
from ..node import NodeFacts
from ..roles import role_compiler
from ..slurm.packages import slurm_build
from ..steps import Json, Phase, Stage, Step
from .packages import EPEL, epel

DIRECTORY_SECRET = "directory"  # noqa: S105  # the secret's name
"""Name of the secret that holds the password of `bind_dn`."""
_HOMES = "/home"


@role_compiler("sssd", after=("package_sources",))
def sssd_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role sssd; none where the spec lists its users.

    Every node has it: Slurm resolves users on controllers and nodes alike. It comes before the
    scheduler, and after the removal of the spec's own accounts.
    """
    users = node.spec.users
    if not isinstance(users, DirectoryUsers):
        return []
    requested: dict[str, Json] = {"sssd_url": users.ldap}
    if users.ca is not None:
        requested["sssd_ca"] = users.ca
    ids: dict[str, Json] = {"sssd_min_id": users.ids.min, "sssd_max_id": users.ids.max or 0}
    variables: dict[str, Json] = {
        **requested,
        **ids,
        "sssd_base": users.search_base or "",
        "sssd_schema": users.schema,
        "sssd_allow_groups": list(users.allow_groups),
        "sssd_admin_groups": list(users.admin_groups),
        "sssd_make_homes": not _homes_are_served(node),
    }
    secrets: dict[str, str] = {}
    if users.bind_dn is not None:
        variables["sssd_bind_dn"] = users.bind_dn
        secrets["sssd_bind_password_file"] = DIRECTORY_SECRET
    probe: dict[str, Json] = {"sssd_probe": users.probe} if users.probe is not None else {}
    return [
        _sssd_step("preflight", requested),
        _sssd_step("install", {}),
        _sssd_step("configure", variables, secrets),
        _sssd_step("verify", ids | probe),
    ]


def _homes_are_served(node: NodeFacts) -> bool:
    """Whether homes are on storage of the cluster: who serves them makes them."""
    return any(mount_point(storage) == _HOMES for storage in node.spec.storage.values())


def _sssd_step(
    phase: Phase, variables: dict[str, Json], secrets: dict[str, str] | None = None
) -> Step:
    """Return a step; running jobs have resolved their user already."""
    return Step(
        stage=Stage.BASE,
        role="sssd",
        phase=phase,
        variables=variables,
        secrets=secrets or {},
        spares_jobs=True,
    )


_UNPRIVILEGED = "1024-65535"
"""srun, MPI and NCCL listen on the kernel's ephemeral ports; Slurm's own 6817 to 6819 are among
them.
"""
_SERVERS = ["111", "988", _UNPRIVILEGED]
"""What storage servers call back to: rpcbind, LNet's acceptor (988), NFS callbacks."""
_ALL = "1-65535"


@role_compiler("hardening", after=("pam_slurm_adopt",))
def hardening_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role hardening; none where the spec doesn't have it.

    It comes last: what it closes has worked by then.
    """
    hardening = node.spec.hardening
    if hardening is None:
        return []
    audit: dict[str, Json] = {"hardening_audit": hardening.audit and node.is_machine}
    ports, users = _ssh(node)
    holds: dict[str, Json] = {
        "hardening_ssh_user": "root" if "root" in users else min(users),
        "hardening_planes": _planes(node, hardening, ports),
        **audit,
    }
    if not node.is_machine:  # the kernel is another's, and its settings are
        holds["hardening_sysctls"] = {}
    return [
        _hardening_step("install", audit),
        _hardening_step("configure", holds),
        _hardening_step("verify", holds),
    ]


def _planes(node: NodeFacts, hardening: Hardening, ssh: list[str]) -> list[Json]:
    """Return what may come in from where; nothing without the networks of management."""
    if not hardening.management:
        return []
    of_sites = networks_of_sites(node.spec, node.spec.sites)
    planes: list[tuple[str, list[str], list[str], list[str]]] = [
        ("management", hardening.management, ssh, []),
        ("nodes", hardening.nodes or of_sites, [*ssh, _UNPRIVILEGED], [_UNPRIVILEGED]),
        ("fabric", hardening.fabric, [_ALL], [_ALL]),
        ("storage", hardening.storage, _SERVERS, [_UNPRIVILEGED]),
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
    """Return ports without those inside a range: nftables refuses overlaps."""
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


def _hardening_step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(
        stage=Stage.MONITORING,
        role="hardening",
        phase=phase,
        variables=variables,
        spares_jobs=True,
    )


@role_compiler("pam_slurm_adopt", sources=EPEL, chosen=epel, after=("firmware",))
def pam_slurm_adopt_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role pam_slurm_adopt: for compute machines under Slurm.

    Containers have no cgroups for a login; a site with some of them counts as all containers. A
    controller that computes is also a login node, so it admits all users. It comes last, when Slurm
    runs and its requirements exist.
    """
    slurm = node.spec.scheduler
    made_here = any(site.is_made_here for site in node.spec.sites.values())
    if not isinstance(slurm, SlurmScheduler) or node.pool.role != "compute":
        return []
    if made_here or not node.is_machine:
        return []
    if slurm.node_logins == "any":
        anyone: dict[str, Json] = {"pam_slurm_adopt_jobs_only": False}
        return [_step("configure", anyone), _step("verify", anyone)]
    build = slurm_build(node)
    install = _step("install", {"pam_slurm_adopt_slurm_version": build.version} if build else {})
    return [
        msgspec.structs.replace(install, from_mirror=build is not None),
        _step("configure", _exempt(node.spec)),
        _step("verify", {}),
    ]


def _exempt(spec: ClusterSpec) -> dict[str, Json]:
    """Return who needs no job: administrators. The role adds root and gcluster's own login."""
    users = [user.name for user in spec.local_users if user.sudo]
    groups = list(spec.users.admin_groups) if isinstance(spec.users, DirectoryUsers) else []
    variables = {"pam_slurm_adopt_users": users, "pam_slurm_adopt_groups": groups}
    return {name: value for name, value in variables.items() if value}


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(
        stage=Stage.MONITORING,
        role="pam_slurm_adopt",
        phase=phase,
        variables=variables,
        spares_jobs=True,
    )
