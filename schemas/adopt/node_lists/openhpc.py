"""The settings of an OpenHPC recipe (input.local): a head, compute nodes and what they run.

Settings and what the recipes do with them: github.com/openhpc/ohpc, commit be86d70,
docs/recipes/install/rocky9/input.local.template.
"""

from __future__ import annotations

import re
from typing import Any

from ..draft import Adopted, Draft, NothingToAdopt, reasons
from ..slurm.hardware import hardware_of
from ..slurm.output import record_of
from ..source import Kind, Source
from .pools import SITE, ListedNode, begin, write_pool

_LINE = re.compile(r'^\s*(?:export\s+)?(\w+)(?:\[(\d+)\])?=(?:"([^"]*)"|(\S*))', re.MULTILINE)
_DEFAULT = re.compile(r"^\$\{\w+(?:\[\d+\])?:-(.*)\}$")
_OTHER = re.compile(r"\$\{(\w+)\}")
_REASONS: tuple[tuple[str, str, Kind], ...] = (
    ("bmc", "firmware: {bmc, credentials} of the pool", "lost"),
    ("c_mac", "hosts keep the way they boot", "replaced"),
    ("eth_", "hosts keep their network", "replaced"),
    ("netmask", "hosts keep their network", "replaced"),
    ("gateway", "hosts keep their network", "replaced"),
    ("ipoib", "rdma: {ipoib: {network}} of the pool", "lost"),
    ("ntp", "hosts keep their clock's servers", "replaced"),
    ("dns", "hosts keep their name servers", "replaced"),
    ("domain", "hosts keep their names", "replaced"),
    ("iso_path", "hosts keep the system that they boot", "replaced"),
    ("repo", "software: {sources}", "replaced"),
    ("provision", "hosts keep the way they boot", "replaced"),
    ("enable_mpi", "Open MPI comes with the cluster", "replaced"),
    ("enable_beegfs", "gcluster mounts no BeeGFS", "lost"),
    ("sysmgmtd", "gcluster mounts no BeeGFS", "lost"),
    ("enable_opensm", "rdma: {subnet_manager} of the pool", "lost"),
    ("enable_intel", "compilers are not installed", "lost"),
    ("enable_arm", "compilers are not installed", "lost"),
    ("enable_", "the spec has no word for it", "lost"),
    ("compute_regex", "pools list their hosts", "replaced"),
    ("compute_prefix", "pools list their hosts", "replaced"),
)
_HOME = {"type": "nfs", "mount": "/home", "server": "head"}
"""The recipes export /home of the head to all nodes."""


def read_input(text: str) -> dict[str, Any]:
    """Return the settings of an input.local; arrays are mappings of their index.

    A setting's default, ${name:-value}, is its value, for it is what the recipe takes.
    """
    found: dict[str, Any] = {}
    for name, index, quoted, bare in _LINE.findall(text):
        value = quoted or bare
        default = _DEFAULT.match(value)
        value = default[1] if default is not None else value
        value = _OTHER.sub(lambda one: str(found.get(one[1], one[0])), value)
        if index:
            of_index = found.setdefault(name, {})
            if isinstance(of_index, dict):
                of_index[index] = value
        else:
            found[name] = value
    return found


def adopt_openhpc(text: str, *, name: str, user: str, origin: str, date: str) -> Adopted:
    """Draft a spec of an input.local.

    Args:
        text: the file.
        name: of the cluster.
        user: whom gcluster logs in to the nodes as.
        origin: where it comes from, in words.
        date: when it was read.

    Raises:
        NothingToAdopt: it has no compute nodes.
    """
    source = Source(read_input(text))
    names, addresses = source.part("c_name"), source.part("c_ip")
    if not names.names():
        raise NothingToAdopt("it has no c_name: is it OpenHPC's input.local?")
    draft = Draft(name, origin=origin, date=date)
    head = ListedNode(source.text("sms_name"), source.text("sms_ip"))
    begin(draft, head if head.name else None, user)
    nodes = [ListedNode(names.text(key), addresses.text(key)) for key in names.names()]
    count = source.number("num_computes")
    if count is not None and count != len(nodes):
        source.leave("the nodes that c_name lists are carried", "num_computes", kind="replaced")
    more: dict[str, Any] = {}
    record = record_of(f"NodeName={source.text('slurm_node_config')}")
    hardware = hardware_of(record, (), "", draft) if record else None
    if hardware is not None and "Sockets" in record:
        more["cpu"] = {
            "sockets": hardware.sockets, "cores": hardware.cores,
            "threads_per_core": hardware.threads,
        }  # fmt: skip
    parameters = source.text("kargs").split()
    if parameters:
        more["boot"] = {"parameters": parameters}
    write_pool(draft, "compute", nodes, **more)
    draft.storage["home"] = dict(_HOME)
    _lustre(source, draft)
    for key in source.names():
        if key.startswith("enable_"):
            source.agrees(key, value="0")
    source.take("enable_lustre_client")
    source.leave("PMIx comes with the cluster", "enable_pmix", kind="replaced")
    draft.settle(source, reasons(_REASONS))
    return draft.finished()


def _lustre(source: Source, draft: Draft) -> None:
    server, _, path = source.text("mgs_fs_name").rpartition(":/")
    if source.text("enable_lustre_client") != "1":
        return
    if server and path:
        draft.storage["lustre"] = {
            "type": "lustre", "mount": "/mnt/lustre", "site": SITE, "mgs": server, "fsname": path,
        }  # fmt: skip
