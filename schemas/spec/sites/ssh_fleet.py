"""Machines that come with a list of addresses: Lambda, CoreWeave bare metal, Together ..."""

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from msgspec import Meta, field

from ..model import FilePath, updates
from .bare_metal import BareMetalSite, ListedHost
from .host_line import read_line

Line = Annotated[
    str,
    Meta(
        pattern=r"^[^\s#][^\r\n]*$(?!\n)",
        examples=["192.0.2.11", "192.0.2.11 ubuntu 22", "ubuntu@192.0.2.11:2222 name=gpu001"],
    ),
]
"""[USER@]ADDRESS[:PORT] [USER [PORT]] [name=NAME]."""


class SshFleetSite(BareMetalSite, frozen=True, kw_only=True, tag_field="provider", tag="ssh-fleet"):
    """Hosts that come with a list of addresses; gcluster installs software and rents nothing.

    Pools name the hosts (`hosts: "gpu[001-004]"`), the list says where each is: by its name, or the
    first that has none for the first host that the list doesn't name, in the order of the pools.
    """

    UPDATES: ClassVar = updates(none="usd_per_hour", in_place="hosts hosts_file")

    machines_of: ClassVar[str] = "bare-metal"

    hosts: list[Line | ListedHost] = field(default_factory=list)
    """The list: lines, or entries that say more."""
    hosts_file: Annotated[FilePath | None, Meta(examples=["hosts.txt"])] = None
    """The list in a file next to the spec: lines, or the JSON that the cloud's API or `kubectl get
    nodes -o json` gives."""
    usd_per_hour: dict[str, Annotated[float, Meta(ge=0)]] = field(default_factory=dict)
    """What you pay for a node and hour in USD, by machine type."""

    def own_price(self, machine: str) -> float | None:
        """Return what the user says that a node costs."""
        return self.usd_per_hour.get(machine)

    @property
    def listed(self) -> tuple[ListedHost, ...]:
        """The list as entries; lines that can't be read are left out (a check reports them)."""
        read = (read_line(item) if isinstance(item, str) else item for item in self.hosts)
        return tuple(entry for entry in read if isinstance(entry, ListedHost))

    def placed(self, names: Iterable[str]) -> Mapping[str, ListedHost]:
        """Return which machine of the list each host is; those that it has none for are absent.

        Args:
            names: hosts of all pools of the site, in their order.
        """
        wanted = list(dict.fromkeys(names))
        by_name = {entry.name: entry for entry in self.listed if entry.name is not None}
        unnamed = iter([entry for entry in self.listed if entry.name is None])
        found = {name: by_name.get(name) or next(unnamed, None) for name in wanted}
        return {name: entry for name, entry in found.items() if entry is not None}
