"""One spec of a fleet, as far as it holds: what other clusters could clash with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from ..derived.hostlist import HostlistError, expand
from ..diagnostics import PathTuple, Span
from ..load import Loaded
from ..spec import ClusterSpec, Pool
from ..spec.sites import SITE_TYPES
from ..spec.sites.ssh_fleet import SshFleetSite

_SSH_PORT = 22
_EXISTING = frozenset({"vpc", "vnet"})
"""Keys of a site's network that name one which is there already."""


class Hosts(NamedTuple):
    """Hosts that one item of a bare-metal pool names; addresses is None where none are given."""

    pool: str
    path: PathTuple
    names: list[str]
    addresses: list[str] | None
    port: int
    bastion: str


class Network(NamedTuple):
    """The network of a site: what is written, and where."""

    site: str
    provider: str
    path: PathTuple
    cidr: str
    rooms: frozenset[str]
    """Bare-metal sites whose routers lead to it, its own included."""


class Member:
    """A spec by its plain data: a mistake elsewhere in the file hides no clash.

    What an error was reported for is left out here; it may not mean what it says.
    """

    def __init__(self, loaded: Loaded) -> None:
        """Look at a loaded file; one that is no readable mapping has nothing to clash with."""
        self.file = loaded.file
        self._spec = loaded.spec
        self._document = loaded.document
        spoilt = {found.path for found in loaded.diagnostics if found.is_error and found.path}
        self._spoilt = spoilt
        self._holders = {path[:length] for path in spoilt for length in range(1, len(path))}

    def span(self, path: PathTuple) -> Span | None:
        """Return the place of the value at `path`."""
        return self._document.locate(path) if self._document is not None else None

    def place(self, path: PathTuple) -> str:
        """Return FILE:LINE of the value at `path`."""
        span = self.span(path)
        return self.file if span is None else f"{self.file}:{span.line}"

    @cached_property
    def name(self) -> str | None:
        """The cluster's name; None when it is not known."""
        return self._text("name")

    @cached_property
    def state(self) -> str | None:
        """Where its state is kept, as a URL without trailing slashes; None: next to the spec."""
        written = self._text("state")
        return None if written is None else written.rstrip("/")

    @cached_property
    def rooms(self) -> dict[str, str]:
        """Bare-metal sites by name: what makes two of them one room."""
        return {
            name: f"bastion {bastion}" if (bastion := _bastion(_ssh(site))) else f"site {name}"
            for name, site in self._entries("sites")
            if _exists(site.get("provider"))
        }

    def hosts(self) -> Iterator[Hosts]:
        """Yield the hosts that exist: of bare metal one group an item, then those of lists."""
        lists = {name for name, site in self._entries("sites") if _has_list(site.get("provider"))}
        sites = {
            name: site
            for name, site in self._entries("sites")
            if name in self.rooms and name not in lists
        }
        for pool, entry in self._entries("pools"):
            site = entry.get("site")
            written = entry.get("hosts")
            if not isinstance(site, str) or site not in sites or written is None:
                continue
            where: PathTuple = ("pools", pool, "hosts")
            items = [(where, written)]
            if isinstance(written, list):
                items = [((*where, index), item) for index, item in enumerate(written)]
            for path, item in items:
                hosts = self._hosts(pool, path, item, _ssh(sites[site]))
                if hosts is not None:
                    yield hosts
        if lists and self._spec is not None:
            yield from _listed_hosts(self._spec, lists)

    def networks(self) -> Iterator[Network]:
        """Yield the networks of sites, where the spec says their range.

        A network of a cloud that exists already belongs to no cluster and is left out.
        """
        for name, site in self._entries("sites"):
            network = site.get("network")
            provider = site.get("provider")
            if not isinstance(network, dict) or not isinstance(provider, str):
                continue
            cidr = network.get("cidr")
            path: PathTuple = ("sites", name, "network", "cidr")
            exists = not _EXISTING.isdisjoint(network)
            if isinstance(cidr, str) and cidr != "auto" and not exists and self._holds(path):
                rooms = frozenset(self._rooms_of(name))
                yield Network(name, provider, path, cidr, rooms)

    def _rooms_of(self, site: str) -> Iterator[str]:
        """Yield the bare-metal sites that route to a site: those it has links to.

        Without any links written, every site of a cluster must reach every other.
        """
        for room, identity in self.rooms.items():
            if room == site or not self._links or frozenset((room, site)) in self._links:
                yield identity

    @cached_property
    def _links(self) -> frozenset[frozenset[str]]:
        links = self._document.data.get("links") if self._document is not None else None
        ends = [
            link.get("between")
            for link in (links if isinstance(links, list) else ())
            if isinstance(link, dict)
        ]
        return frozenset(
            frozenset(end for end in pair if isinstance(end, str))
            for pair in ends
            if isinstance(pair, list)
        )

    def _hosts(self, pool: str, path: PathTuple, item: Any, ssh: dict[str, Any]) -> Hosts | None:
        entry = {"name": item} if isinstance(item, str) else item
        if not isinstance(entry, dict) or not self._holds(path):
            return None
        names, addresses = _expanded(entry.get("name")), _expanded(entry.get("address"))
        if names is None or (addresses is not None and len(addresses) != len(names)):
            return None
        port = entry.get("port", ssh.get("port", _SSH_PORT))
        return Hosts(
            pool=pool,
            path=path if isinstance(item, str) else (*path, "name"),
            names=names,
            addresses=addresses,
            port=port if isinstance(port, int) else _SSH_PORT,
            bastion=_bastion(entry) or _bastion(ssh),
        )

    def _text(self, key: str) -> str | None:
        value = self._document.data.get(key) if self._document is not None else None
        return value if isinstance(value, str) and self._holds((key,)) else None

    def _entries(self, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the named mappings under a root key that are not themselves a mistake."""
        entries = self._document.data.get(key) if self._document is not None else None
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            if isinstance(entry, dict) and (key, name) not in self._spoilt:
                yield name, entry

    def _holds(self, path: PathTuple) -> bool:
        """Say whether no error was reported at, above or below a path."""
        if not self._spoilt:
            return True
        above = any(path[:length] in self._spoilt for length in range(1, len(path) + 1))
        return not above and path not in self._holders


def _exists(provider: Any) -> bool:
    """Say whether the machines of a provider's sites were there before the cluster."""
    kind = SITE_TYPES.get(provider) if isinstance(provider, str) else None
    return kind is not None and not kind.makes_machines


def _has_list(provider: Any) -> bool:
    """Say whether sites of a provider have a list of hosts, so that names are their own."""
    kind = SITE_TYPES.get(provider) if isinstance(provider, str) else None
    return kind is not None and hasattr(kind, "listed")


def _ssh(site: dict[str, Any]) -> dict[str, Any]:
    ssh = site.get("ssh")
    return ssh if isinstance(ssh, dict) else {}


def _bastion(settings: dict[str, Any]) -> str:
    """Return the host of the bastion, without its user; "" for none."""
    bastion = settings.get("bastion")
    return bastion.rpartition("@")[2].lower() if isinstance(bastion, str) else ""


def _expanded(text: Any) -> list[str] | None:
    if not isinstance(text, str):
        return None
    try:
        return expand(text)
    except HostlistError:
        return None


def _listed_hosts(spec: ClusterSpec, sites: set[str]) -> Iterator[Hosts]:
    """Yield the hosts of lists by their addresses, one group a pool and port.

    Args:
        spec: one without errors.
        sites: names of its sites that have a list.
    """
    for site in sorted(sites):
        fleet = spec.sites[site]
        if not isinstance(fleet, SshFleetSite):
            continue
        pools = {name: pool for name, pool in spec.pools.items() if pool.site == site}
        placed = fleet.placed(host for pool in pools.values() for host in _named(pool))
        for name, pool in pools.items():
            by_port: dict[int, list[str]] = {}
            for entry in (placed[host] for host in _named(pool) if host in placed):
                by_port.setdefault(entry.port or fleet.ssh.port, []).append(entry.address)
            bastion = (fleet.ssh.bastion or "").rpartition("@")[2].lower()
            for port, addresses in by_port.items():
                path = ("pools", name, "hosts")
                yield Hosts(name, path, addresses, addresses, port, bastion)


def _named(pool: Pool) -> list[str]:
    """Return the hosts that a pool names and says no address of."""
    written = [pool.hosts] if isinstance(pool.hosts, str) else pool.hosts or []
    names = [item if isinstance(item, str) else item.name for item in written
             if isinstance(item, str) or item.address is None]  # fmt: skip
    return [host for name in names for host in expand(name)]
