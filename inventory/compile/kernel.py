"""The role kernel: the kernel that modules are built for, held, and its boot parameters."""

from __future__ import annotations

from ...schemas.spec import Boot
from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

GPU_BOOT_PARAMETERS = ("iommu=pt",)
"""GPUs and NICs reach each other's memory untranslated; NVIDIA (GPUDirect RDMA documentation, on
IOMMUs) and AMD (MI300X system optimisation) both ask for it. Read 2026-11."""

AMD_BOOT_PARAMETERS = ("pci=realloc=off", "numa_balancing=disable")
"""AMD's system optimisation guide for MI300X: the GPUs' large BARs stay where the firmware put
them, and pages don't wander between processors under RCCL. Read 2026-11."""


@role_compiler("kernel", components=("kernel",), after=("sssd",))
def kernel_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role kernel: on machines with GPUs or Lustre, and where a kernel is said.

    Without a version the kernel that runs is held: modules are built for it.
    """
    asked = node.version("kernel") or ""
    boot = node.pool.boot
    needed = node.gpu is not None or asked or boot != Boot() or node.uses_lustre
    if not node.is_machine or not needed:
        return []
    own_hardware = node.gpu is not None and not node.spec.sites[node.pool.site].is_cloud
    install: dict[str, Json] = {"kernel_version": asked}
    running: dict[str, Json] = install | {
        "kernel_boot_parameters": [
            *(GPU_BOOT_PARAMETERS if own_hardware else ()),
            *(AMD_BOOT_PARAMETERS if own_hardware and node.has_gpu_of("amd") else ()),
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
