"""From a site's stack to its nodes: where the control plane is, and what its API says of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ....schemas.derived.control_planes import managed_by
from ....schemas.spec import ClusterSpec
from ..kubectl import ApiRefused, ApiSilent, Kubectl
from .login import FILE, local_kubectl, write_kubeconfig
from .nodes import ApiNode, managed_site, read_nodes

if TYPE_CHECKING:
    from ...cluster.sites import OpenSite


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a cloud's control plane said."""

    nodes: tuple[ApiNode, ...] = ()
    exists: bool = False
    """Whether the stack has made a control plane."""
    problem: str = ""
    """Why its API gave no answer; "" when it did, or there is none."""


def reach(spec: ClusterSpec, sites: Iterable[OpenSite], folder: Path) -> Kubectl | None:
    """Return the API, with a kubeconfig as the stack says it now; None: there is none.

    Raises:
        ProviderError: the stack can't be asked.
    """
    managed, name = managed_by(spec), managed_site(spec)
    found = next((site for site in sites if site.name == name), None)
    plane = None
    if managed is not None and found is not None:
        plane = found.provider.control_plane(found.context)
    if managed is None or plane is None:
        (folder / FILE).unlink(missing_ok=True)
        return None
    write_kubeconfig(folder, managed, plane)
    return local_kubectl(folder)


def see(spec: ClusterSpec, sites: Iterable[OpenSite], folder: Path) -> Seen:
    """Ask a cloud's control plane for its nodes; never raises for one that is silent.

    Raises:
        ProviderError: the stack can't be asked.
    """
    if managed_site(spec) is None:
        return Seen()
    kubectl = reach(spec, sites, folder)
    if kubectl is None:
        return Seen()
    try:
        return Seen(nodes=read_nodes(kubectl), exists=True)
    except (ApiSilent, ApiRefused) as error:
        return Seen(exists=True, problem=str(error))
