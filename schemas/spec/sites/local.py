"""Nodes on this machine: containers that run systemd and sshd."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from ..model import SpecModel, updates
from .site import SiteModel


class LocalNetwork(SpecModel, frozen=True):
    """The container network of a local site."""

    UPDATES: ClassVar = updates(replace="cidr internal")

    cidr: str = "auto"
    """IPv4 network of the nodes, or "auto": a free /24 of 10.210.0.0/16."""
    internal: bool = False
    """The nodes reach each other and this machine, and nothing beyond it."""


class LocalSite(SiteModel, frozen=True, tag_field="provider", tag="local"):
    """Containers on this machine: no cloud, no GPU, everything else real."""

    UPDATES: ClassVar = updates(replace="runtime network image")

    frees_any_machine: ClassVar[bool] = True

    runtime: Literal["auto", "podman", "docker"] = "auto"
    """Container engine; auto takes podman, and docker where podman is absent."""
    network: LocalNetwork = LocalNetwork()
    """The nodes' network."""
    image: Literal["base", "cloud-like"] = "base"
    """What nodes boot from: base is small and ready at once; cloud-like starts as a stock image of
    a cloud does (cloud-init, a user who is not root, updates, a stock SSH server behind one way
    in), and is never baked."""

    @property
    def boots_stock_image(self) -> bool:
        """Whether its nodes start as machines of a cloud do: no image is baked for them."""
        return self.image == "cloud-like"

    @property
    def networks(self) -> Mapping[tuple[str, ...], str]:
        """The container network, where the spec gives it."""
        cidr = self.network.cidr
        return {} if cidr == "auto" else {("network", "cidr"): cidr}
