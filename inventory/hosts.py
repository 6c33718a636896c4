"""The contract of providers: hosts, how to reach them, and their topology."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..schemas.derived.hostlist import expand, host_stem, host_word
from ..schemas.spec import ClusterSpec, Pool, PoolRole

AFTER_APPLY = "known-after-apply"
"""Placeholder for an address that a cloud assigns on creation."""


def pool_host_names(name: str, pool: Pool) -> list[str]:
    """Return the names of the machines that a site creates for a pool: gpu001, gpu002 ...

    Pool GPU_Long has gpu-long001: a host's name has no upper case and no underscore. The first
    controller and the first login have their pool's name. Growing a pool renames nothing, and no
    two compute pools share a name: one that ends in a digit gets a hyphen. A pool without a count
    has one machine; of an elastic pool these are the fixed machines. Names that the pool skips are
    unused.
    """
    count = 1 if pool.least is None else pool.least
    skipped = frozenset(expand(pool.skip)) if pool.skip is not None else frozenset[str]()
    every = (f"{host_stem(name)}{number:03d}" for number in range(1, count + len(skipped) + 1))
    names = [one for one in every if one not in skipped][:count]
    if names and pool.role != "compute":
        names[0] = host_word(name)
    return names


def elastic_nodes(spec: ClusterSpec) -> dict[str, tuple[str, ...]]:
    """Return pool -> names of the machines it may have beyond those that are always there."""
    found = {}
    for name, pool in spec.pools.items():
        least, most = pool.least, pool.most
        if pool.role == "compute" and least is not None and most is not None and most > least:
            all_of_them = pool_host_names(name, msgspec.structs.replace(pool, count=most))
            found[name] = tuple(all_of_them[least:])
    return found


class SshTarget(msgspec.Struct, frozen=True, kw_only=True):
    """How SSH reaches a host. `host_keys` pins; when empty, `known_hosts_file` vouches."""

    user: str
    port: int = 22
    key_file: str | None = None
    """Private key on the machine that runs gcluster; None: the SSH agent."""
    bastion: str | None = None
    """[user@]host[:port], as in ssh -J."""
    bastion_key_file: str | None = None
    """Private key for the bastion; None: that of the host."""
    bastion_host_keys: tuple[str, ...] = ()
    """Public keys that pin the bastion; when empty, the user's own known_hosts vouches for it."""
    bastion_proxy: tuple[str, ...] = ()
    """Program of a cloud that carries the connection to the bastion, as in ProxyCommand; ssh puts
    in %h and %p. (): the bastion is reached by its address."""
    host_keys: tuple[str, ...] = ()
    """Public keys as in known_hosts, without the host: "ssh-ed25519 AAAA..."."""
    known_hosts_file: str | None = None
    """None: the user's own known_hosts."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a host in the network."""

    block: str | None = None
    """Scalable unit or NVLink domain."""
    leaf: str | None = None
    """Leaf switch group."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One machine of the cluster. `address` is "" while the machine is only planned."""

    name: str
    site: str
    pool: str
    role: PoolRole
    machine: str | None
    """Machine type of the catalog; None for a controller or login without one."""
    compute: bool = False
    """A controller that runs jobs too."""
    address: str = ""
    """IPv4/IPv6 address or DNS name that SSH and the other nodes use."""
    public_address: str = ""
    """Its public address, where its site gives it one in addition to `address`."""
    ssh: SshTarget
    placement: Placement = Placement()
    image: str | None = None
    """Hash of the image the machine booted from, where the provider has it."""
    connection: Literal["ssh", "simulated", "api"] = "ssh"
    """simulated: nothing runs there, and its provider keeps its stamps. api: a node that a cloud's
    Kubernetes runs, without SSH, and named by its cloud."""
    silent: str = ""
    """Why it has no login: it showed no host key within the time limit. "": it did."""
    last_lines: tuple[str, ...] = ()
    """The end of a machine's console without a host key, where its cloud shows that."""

    @property
    def is_compute(self) -> bool:
        """Whether jobs run there."""
        return self.compute or self.role == "compute"

    @property
    def is_real(self) -> bool:
        """Whether anything runs there: some hosts exist only in their provider's file."""
        return self.connection != "simulated"


def in_block(host: Host, block: str | None) -> Host:
    """Return the host with a block, where it has none yet."""
    if block is None or host.placement.block is not None:
        return host
    placement = msgspec.structs.replace(host.placement, block=block)
    return msgspec.structs.replace(host, placement=placement)


class ClusterInventory(msgspec.Struct, frozen=True, kw_only=True):
    """All hosts of one cluster, over all its sites, in spec order then by name."""

    cluster: str
    hosts: tuple[Host, ...]
    storage: dict[str, str] = {}
    """Storage of the spec that a provider made or found -> what clients mount:
    "10.0.0.5@tcp:/scratch". What is only planned is left out."""
    networks: dict[str, tuple[str, ...]] = {}
    """Pool -> NETWORK/SUBNET of each interface of its nodes after the first, as its cloud calls
    them, where pods are given these. What is only planned is left out."""

    @property
    def real(self) -> ClusterInventory:
        """The same without the hosts on which nothing runs: no job, no test."""
        hosts = tuple(host for host in self.hosts if host.is_real)
        return msgspec.structs.replace(self, hosts=hosts)

    @property
    def is_managed(self) -> bool:
        """Whether a cloud runs the control plane that schedules on these hosts."""
        return any(host.connection == "api" for host in self.hosts)

    @property
    def has_scheduler(self) -> bool:
        """Whether jobs can be queried: a controller runs, or a cloud's API does."""
        own = any(h.connection == "ssh" for h in self.with_role("controller"))
        return own or self.is_managed

    def in_pool(self, pool: str) -> tuple[Host, ...]:
        """Return the hosts of one pool, in order."""
        return tuple(host for host in self.hosts if host.pool == pool)

    def with_role(self, role: PoolRole) -> tuple[Host, ...]:
        """Return the hosts that play one role, in order; a controller that computes plays two."""
        if role == "compute":
            return tuple(host for host in self.hosts if host.is_compute)
        return tuple(host for host in self.hosts if host.role == role)
