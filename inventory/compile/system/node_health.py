"""The role node_health: what a pool's machines must have, for the check that runs on each node."""

from __future__ import annotations

from collections.abc import Iterable

from ....schemas.catalog import Machine
from ....schemas.catalog.model.machine import Nic, NicKind
from ....schemas.spec import NoScheduler
from ..hooks import health_checks
from ..network.rdma import rail_devices, rdma_kind
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step

CHECK_PROGRAM = "/usr/libexec/gcluster/node-health-check"
"""What slurm.conf names as HealthCheckProgram; the role's install phase puts it there."""


@role_compiler("node_health", after=("containerd", "enroot_pyxis"))
def node_health_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role node_health.

    Programs and expectations are installed before Slurm starts, which runs the check before a node
    registers; the check itself comes last, when everything else is set up.
    """
    steps = [
        _step(Stage.SCHEDULER, "install", {"node_health_tools": node.is_machine}),
        _step(Stage.SCHEDULER, "configure", _expected(node) | _programs(node) | _notice(node)),
    ]
    return [*steps, _step(Stage.MONITORING, "verify", {})]


def _step(stage: Stage, phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=stage, role="node_health", phase=phase, variables=variables, spares_jobs=True)


def _programs(node: NodeFacts) -> dict[str, Json]:
    """Return the programs of the spec's hooks that take part."""
    programs = health_checks(node)
    return {"node_health_programs": programs} if programs else {}


def _notice(node: NodeFacts) -> dict[str, Json]:
    """Return where an unhealthy node announces it: at logins where no scheduler drains it."""
    unscheduled = isinstance(node.spec.scheduler, NoScheduler)
    return {"node_health_notice": True} if unscheduled else {}


def _expected(node: NodeFacts) -> dict[str, Json]:
    """Return what the machine must have; of a container only what a container has."""
    if not node.is_machine:
        return {"node_health_simulated": True, "node_health_clock": False}
    expected: dict[str, Json] = {
        "node_health_mounts": _mounts(node),
        "node_health_clock": node.has_own_clock,
    }
    machine = node.machine
    if machine is None:
        return expected

    if machine.gpu is not None:
        gpu: dict[str, Json] = {
            "vendor": machine.gpu.vendor,
            "count": machine.gpu.count,
            "memory_gib": machine.gpu.memory_gib,
            "nvlink": _has_nvlink(node, machine),
        }
        if node.pool.is_sliced:
            gpu["slices"] = node.pool.slices_per_gpu
        expected["node_health_gpus"] = gpu
    expected["node_health_nics"] = _nics(node, machine.nics or ())
    memory_gib = node.pool.memory.value / 2**30 if node.pool.memory is not None else None
    expected["node_health_memory_gib"] = memory_gib or machine.memory_gib or 0
    return expected


def _has_nvlink(node: NodeFacts, machine: Machine) -> bool:
    """Return whether NVLinks are looked at: in MIG mode none carries anything."""
    is_nvidia = machine.gpu is not None and machine.gpu.vendor == "nvidia"
    return machine.nvlink is not None and is_nvidia and not node.pool.is_sliced


def _nics(node: NodeFacts, nics: Iterable[Nic]) -> list[Json]:
    """Return what NICs there must be: rails by device, EFA's and Google's by their kind alone."""
    expected: list[Json] = []
    counted: dict[NicKind, int] = {}
    for nic in nics:
        if nic.kind in {"efa", "ena", "gvnic", "idpf"}:
            counted[nic.kind] = counted.get(nic.kind, 0) + nic.count
            continue
        one: dict[str, Json] = {"kind": nic.kind, "count": nic.count, "gbps": nic.gbps or 0}
        devices = rail_devices(node) if nic.kind == rdma_kind(node) and not nic.front_end else []
        one |= {"front_end": True} if nic.front_end else {"devices": devices} if devices else {}
        expected.append(one)
    return [*expected, *({"kind": kind, "count": count} for kind, count in counted.items())]


def _mounts(node: NodeFacts) -> list[Json]:
    """Return what the pool mounts, by path: of the pools a storage names, else of its site."""
    storage = node.spec.storage
    return [
        {"path": storage[name].mount, "type": storage[name].MOUNT_TYPE}
        for name in sorted(node.storage.mounts)
    ]
