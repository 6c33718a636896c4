"""Warewulf's nodes.conf: nodes with the same profiles become a pool.

Keys are those of Warewulf 4 (github.com/warewulf/warewulf, commit 148e8de, etc/nodes.conf and
internal/pkg/node).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..draft import Adopted, Draft, NothingToAdopt, reasons
from ..source import Kind, Source
from .pools import SITE, ListedNode, begin, write_pool

_REASONS: tuple[tuple[str, str, Kind], ...] = (
    ("ipmi", "firmware: {bmc, credentials} of the pool", "lost"),
    ("overlay", "gcluster's roles write the nodes' files", "replaced"),
    ("image name", "hosts keep the system that they boot", "replaced"),
    ("container name", "hosts keep the system that they boot", "replaced"),
    ("ipxe", "hosts keep the way they boot", "replaced"),
    ("init", "hosts keep the way they boot", "replaced"),
    ("root", "hosts keep the way they boot", "replaced"),
    ("hwaddr", "hosts keep the way they boot", "replaced"),
    ("discoverable", "hosts keep the way they boot", "replaced"),
    ("netmask", "hosts keep their network", "replaced"),
    ("gateway", "hosts keep their network", "replaced"),
    ("device", "hosts keep their network", "replaced"),
    ("comment", "a remark for people", "replaced"),
    ("network devices", "hosts keep their network", "replaced"),
    ("disks", "hosts keep their disks", "replaced"),
    ("filesystems", "hosts keep their file systems", "replaced"),
    ("tags", "what your overlays read", "lost"),
    ("kernel", "kernel: of software; hosts keep the system that they boot", "lost"),
)
_SERVER = "warewulf"
"""What nodes call the host of Warewulf (overlays/hosts)."""
_OWN_OPTIONS = frozenset({"defaults", "nofail", "noauto", "rw", "ro", "_netdev"})


def adopt_warewulf(  # what the command was given
    data: Any, *, name: str, user: str, controller: str, origin: str, date: str
) -> Adopted:
    """Draft a spec of a nodes.conf.

    Args:
        data: the file's.
        name: of the cluster.
        user: whom gcluster logs in to the nodes as.
        controller: host that is to be Slurm's controller; "": it is not known.
        origin: where it comes from, in words.
        date: when it was read.

    Raises:
        NothingToAdopt: it has no nodes.
    """
    source = Source(data)
    nodes = source.part("nodes")
    if not nodes.names():
        raise NothingToAdopt("it has no nodes: is it Warewulf's nodes.conf?")
    draft = Draft(name, origin=origin, date=date)
    begin(draft, ListedNode(controller) if controller else None, user)
    alike: dict[tuple[str, ...], list[ListedNode]] = defaultdict(list)
    for node in nodes.names():
        part = nodes.part(node)
        profiles = part.texts("profiles") or ["default"]
        if node == controller:
            continue
        alike[tuple(profiles)].append(ListedNode(node, _address(part)))
    used = {profile for profiles in alike for profile in profiles}
    parameters = _profiles(source.part("nodeprofiles"), used, controller, draft)
    for together, listed in alike.items():
        own = [profile for profile in together if profile != "default"]
        boot = list(dict.fromkeys(p for each in together for p in parameters.get(each, ())))
        more = {"boot": {"parameters": boot}} if boot else {}
        write_pool(draft, "-".join(own) or "nodes", listed, **more)
    draft.carry(len(nodes.names()))
    draft.settle(source, reasons(_REASONS))
    draft.leave("partitions", "one, with all pools: not specified", "guess")
    draft.leave("users and Slurm", "nodes.conf doesn't say them")
    return draft.finished()


def _address(node: Source) -> str:
    """Return the address of a node's primary network, else of its first."""
    devices = node.part("network devices")
    primary = node.text("primary network")
    names = [primary, "default", *devices.names()]
    found = [devices.text(each, "ipaddr") for each in names if each in devices.names()]
    return next((address for address in found if address), "")


def _profiles(
    profiles: Source, used: set[str], controller: str, draft: Draft
) -> dict[str, list[str]]:
    """Write the mounts of the profiles; return profile -> parameters of the kernel."""
    parameters: dict[str, list[str]] = {}
    for name in profiles.names():
        profile = profiles.part(name)
        if name not in used:
            continue
        parameters[name] = profile.texts("kernel", "args")
        if len(parameters[name]) == 1:
            parameters[name] = parameters[name][0].split()
        for mount in profile.part("resources").each("fstab"):
            _mount(mount, controller, draft)
    return parameters


def _mount(mount: Source, controller: str, draft: Draft) -> None:
    kind, path, spec = mount.text("vfstype"), mount.text("file"), mount.text("spec")
    server, _, export = spec.partition(":")
    if kind not in {"nfs", "nfs4"} or not export:
        for key in mount.names():
            mount.leave("storage of the spec", key)
        return
    head = server in {_SERVER, controller}
    entry: dict[str, Any] = {"type": "nfs", "mount": path, "server": "head" if head else server}
    if not head:
        entry["site"] = SITE
    if export != path:
        entry["export"] = export
    options = mount.text("mntops").split(",")
    if "ro" in options:
        entry["read_only"] = True
    own = [each for each in options if each and each not in _OWN_OPTIONS]
    if own:
        entry["options"] = own
    draft.storage[draft.fit(path.strip("/"), "storage", draft.storage)] = entry
