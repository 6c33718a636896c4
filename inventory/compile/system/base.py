"""The roles of the machine itself: base (names, people, time), kernel and firmware."""

from __future__ import annotations

import msgspec

from ....schemas.spec import Boot, ClusterSpec, Pool, User
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step


@role_compiler("base", after=("bundle_source",))
def base_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role base.

    Every node resolves controllers and logins by name, never the compute nodes: the scheduler has
    their addresses, and a new one must not change the others. Who may log in depends on the pool's
    role.
    """
    spec = node.spec
    users = [_user(user) for user in spec.local_users]
    time: dict[str, Json] = {"base_time": node.has_own_clock}
    names = [{"name": host.name, "address": host.address} for host in node.cluster.found_by_name]
    configure = {"base_cluster": spec.name, "base_hosts": names, "base_users": users, **time}
    ssh = _ssh(spec, node.pool)
    configure |= ssh
    return [
        Step(stage=Stage.BASE, role="base", phase="preflight", variables={}),
        Step(stage=Stage.BASE, role="base", phase="install", variables=time, spares_jobs=True),
        Step(
            stage=Stage.BASE, role="base", phase="configure", variables=configure, spares_jobs=True
        ),
        Step(stage=Stage.BASE, role="base", phase="verify", variables={"base_users": users} | ssh),
    ]


def _ssh(spec: ClusterSpec, pool: Pool) -> dict[str, Json]:
    """Return who can't log in to the nodes of a pool, and whose certificates they take."""
    roles = {pool.role, "compute"} if pool.is_compute else {pool.role}
    denied = [u.name for u in spec.local_users if u.login is not None and roles.isdisjoint(u.login)]
    variables = {"base_denied_users": denied, "base_ssh_authorities": spec.ssh_authorities}
    return {name: value for name, value in variables.items() if value}


def _user(user: User) -> Json:
    """Return an account with every default filled in."""
    gid = user.uid if user.gid is None else user.gid
    fields = msgspec.structs.asdict(user) | {"gid": gid}
    del fields["login"], fields["mail"]
    return fields


GPU_BOOT_PARAMETERS = ("iommu=pt",)
"""GPUs and NICs reach each other's memory untranslated; NVIDIA (GPUDirect RDMA documentation, on
IOMMUs) and AMD (MI300X system optimisation) both require it. Read 2026-11."""

AMD_BOOT_PARAMETERS = ("pci=realloc=off", "numa_balancing=disable")
"""AMD's system optimisation guide for MI300X: the GPUs' large BARs stay where the firmware put
them, and pages don't wander between processors under RCCL. Read 2026-11."""


@role_compiler("kernel", components=("kernel",), after=("sssd",))
def kernel_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role kernel: for GPUs, Lustre, or a kernel in the spec.

    Without a version the kernel that runs is held: modules are built for it.
    """
    requested = node.version("kernel") or ""
    boot = node.pool.boot
    needed = node.gpu is not None or requested or boot != Boot() or node.uses_lustre
    if not node.is_machine or not needed:
        return []
    own_hardware = node.gpu is not None and not node.spec.sites[node.pool.site].is_cloud
    install: dict[str, Json] = {"kernel_version": requested}
    running: dict[str, Json] = install | {
        "kernel_boot_parameters": [
            *(GPU_BOOT_PARAMETERS if own_hardware else ()),
            *(AMD_BOOT_PARAMETERS if own_hardware and node.has_gpu_of("amd") else ()),
            *(() if boot.smt else ("nosmt",)),
            *boot.parameters,
        ],
        "kernel_hugepages_gib": 0 if boot.hugepages is None else int(boot.hugepages.value // 2**30),
    }
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", install),
        ("configure", running),
        ("join", running | {"kernel_reboot": boot.reboot}),
        ("verify", running),
    )
    return [
        Step(
            stage=Stage.BASE,
            role="kernel",
            phase=phase,
            variables=variables,
            spares_jobs=phase != "join",
        )
        for phase, variables in phases
    ]


@role_compiler("tuning", after=("roce", "gib"))
def tuning_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role tuning: on own machines with GPUs, and where the spec enables it.

    After the fabric's drivers, whose adapters lose their registers on a reload.
    """
    requested = node.pool.tuning
    own = node.gpu is not None and not node.spec.sites[node.pool.site].is_cloud
    pages = requested.transparent_hugepages
    variables: dict[str, Json] = {
        "tuning_processors": _tuned(requested.processors, own=own),
        "tuning_pcie": _tuned(requested.pcie, own=own),
        "tuning_numa_balancing": _tuned(requested.numa_balancing, own=own),
        "tuning_transparent_hugepages": "" if pages == "unmanaged" else pages,
    }
    if not node.is_machine or not any(variables.values()):
        return []
    phases: tuple[Phase, ...] = ("configure", "join", "verify")
    return [
        Step(
            stage=Stage.FABRIC,
            role="tuning",
            phase=phase,
            variables=variables,
            spares_jobs=True,
        )
        for phase in phases
    ]


def _tuned(requested: str, *, own: bool) -> bool:
    return own if requested == "auto" else requested != "unmanaged"


@role_compiler("firmware", after=("node_health",))
def firmware_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role firmware; none for nodes that have no firmware of their own.

    The phase update exists only where the spec has `firmware.update`, and drains the node first.
    """
    if not node.is_machine:
        return []
    firmware = node.pool.firmware
    if firmware is None:
        return [_step("install", {}), _step("verify", {})]
    requested: dict[str, Json] = {
        "firmware_bmc": firmware.bmc,
        "firmware_credentials_file": firmware.credentials,
        "firmware_ca_file": firmware.certificates or "",
        "firmware_wanted": {
            target: {k: v for k, v in msgspec.to_builtins(wanted).items() if v is not None}
            for target, wanted in sorted(firmware.wanted.items())
        },
    }
    update: dict[str, Json] = requested | {
        "firmware_update": firmware.update,
        "firmware_slurm": node.pool.is_compute,
    }
    named = [_step("update", update)] if firmware.update else []
    return [_step("install", {}), *named, _step("verify", requested)]


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    """Return a step; only an update disturbs jobs."""
    return Step(
        stage=Stage.MONITORING,
        role="firmware",
        phase=phase,
        variables=variables,
        spares_jobs=phase != "update",
    )
