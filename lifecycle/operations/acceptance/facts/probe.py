"""What nodes have that tests need: programs, GPUs, RDMA devices; read over SSH, all at once."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from .....inventory.hosts import Host
from .....schemas.catalog import Catalog
from .....schemas.derived.hostlist import fold
from ....nodes.ssh import SshSession, Unreachable
from ....smoke.domains import machine_of
from ..table import Needs, OptionName, Way

PATH = (
    "/opt/nccl-tests/bin:/opt/nccl-tests/build:/opt/rccl-tests/bin:/opt/rccl-tests/build:$PATH"
    ":/usr/local/bin"
)
"""Search path of programs, here and in jobs: as shell text, in double quotes."""
_LIMIT_S = 60


class NodeHas(msgspec.Struct, frozen=True, kw_only=True):
    """What one node has."""

    gpu: str = "none"
    """Vendor of its GPUs; none: it has none that are real."""
    programs: frozenset[str] = frozenset()
    rdma: tuple[str, ...] = ()
    """Link layers of its RDMA ports: InfiniBand, Ethernet."""
    silent: str = ""
    """Why it could not be queried; "": it was."""


def probe(
    session: SshSession,
    hosts: Sequence[Host],
    catalog: Catalog,
    programs: Iterable[str],
    sliced: Collection[str] = (),
) -> dict[str, NodeHas]:
    """Return what each node has of these programs, and its devices.

    Args:
        session: to the nodes.
        hosts: the nodes.
        catalog: has their machines.
        programs: what is looked for.
        sliced: pools whose GPUs are cut into MIG slices: tests of GPUs are of whole ones.
    """
    names = " ".join(map(shlex.quote, sorted(set(programs))))
    command = (
        f'PATH="{PATH}"; for p in {names}; do'
        ' if [ -e "$p" ] || command -v "$p" >/dev/null 2>&1; then echo "program $p"; fi;'
        " done; for f in /sys/class/infiniband/*/ports/*/link_layer; do"
        " [ -e $f ] && echo rdma $(cat $f); done; true"
    )
    answers = session.run_many(hosts, command, timeout_s=_LIMIT_S)
    found = {}
    for host in hosts:
        answer, machine = answers[host.name], machine_of(catalog, host)
        real = machine is not None and not machine.simulated and host.pool not in sliced
        vendor = machine.gpu.vendor if machine and machine.gpu and real else "none"
        if isinstance(answer, Unreachable):
            found[host.name] = NodeHas(gpu=vendor, silent=answer.reason)
            continue
        words = [line.partition(" ") for line in answer.stdout.splitlines()]
        found[host.name] = NodeHas(
            gpu=vendor,
            programs=frozenset(name for kind, _, name in words if kind == "program"),
            rdma=tuple(name for kind, _, name in words if kind == "rdma"),
        )
    return found


def choose_way(
    ways: Sequence[Way],
    nodes: Iterable[str],
    has: Mapping[str, NodeHas],
    options: Collection[OptionName],
) -> Way | str:
    """Return the first way that all of the nodes can go; else why none can be gone."""
    taking_part = list(nodes)
    silent = [name for name in taking_part if has[name].silent]
    if silent:
        return f"{fold(silent)}: {has[silent[0]].silent}"
    reasons = []
    for way in ways:
        lacks = _lacks(way.needs, taking_part, has, options)
        if not lacks:
            return way
        reasons.append(lacks)
    # For the variant of the existing GPUs it reports what is missing, not that the GPUs are others.
    return min(reasons, key=lambda lacks: (lacks.startswith(_OTHER_GPU), reasons.index(lacks)))


_OTHER_GPU = "no GPUs of "
_UNASKED: Mapping[OptionName, str] = {
    "path": "no directory was named (--path)",
    "wiring": "no wiring plan was given (--wiring)",
    "drill": "no node was named for it (--drill)",
    "container": "no image was named (--container)",
}


def _lacks(
    needs: Needs, nodes: Sequence[str], has: Mapping[str, NodeHas], options: Collection[OptionName]
) -> str:
    if needs.gpu == "none" and any(has[name].gpu != "none" for name in nodes):
        return f"{_OTHER_GPU}this way: there are real ones"
    if needs.gpu not in {"", "none"} and (
        others := [name for name in nodes if has[name].gpu != needs.gpu]
    ):
        return f"{_OTHER_GPU}{needs.gpu} on {fold(others)}"
    for name in needs.options:
        if name not in options:
            return _UNASKED[name]
    for program in needs.programs:
        if without := [name for name in nodes if program not in has[name].programs]:
            return f"{program} isn't on {fold(without)}"
    if needs.rdma:
        layer = "" if needs.rdma == "any" else f"{needs.rdma} "
        without = [n for n in nodes if not [r for r in has[n].rdma if needs.rdma in {"any", r}]]
        if without:
            return f"no {layer}RDMA device on {fold(without)}"
    return ""
