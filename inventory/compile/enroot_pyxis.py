"""The role enroot_pyxis: containers of Slurm jobs."""

from __future__ import annotations

from collections.abc import Iterable

from .node import NodeFacts
from .package_sources import file_variables
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

PLUGIN_LINE = (
    "required /usr/local/lib/slurm/spank_pyxis.so runtime_path=/run/pyxis container_scope=job"
)
"""Of plugstack.conf. A node without the plugin must refuse a job that asks for a container: with
`optional` it would run it outside of one."""


def plugin_lines(nodes: Iterable[NodeFacts]) -> list[str]:
    """Return the lines of plugstack.conf: pyxis, where all that is a machine has it."""
    machines = [node for node in nodes if node.is_machine]
    has_it = bool(machines) and all(node.software.containers == "pyxis" for node in machines)
    return [PLUGIN_LINE] if has_it else []


@role_compiler("enroot_pyxis", components=("containers",))
def enroot_pyxis_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role enroot_pyxis; none where the spec asks for no containers.

    Whoever submits jobs needs pyxis too, for its options; only compute nodes need enroot.
    """
    enroot, pyxis = node.version("enroot"), node.version("pyxis")
    if not node.is_machine or node.software.containers != "pyxis" or not (enroot and pyxis):
        return []
    runs: dict[str, Json] = {"enroot_pyxis_runs_containers": node.pool.role == "compute"}
    files: dict[str, Json] = runs | {
        "enroot_pyxis_enroot_version": enroot,
        "enroot_pyxis_enroot_files": {
            family: [file_variables(node, "enroot", name, enroot) for name in names]
            for family, names in {
                "Debian": ("deb", "deb-caps"),
                "RedHat": ("rpm", "rpm-caps"),
            }.items()
        },
        "enroot_pyxis_pyxis_version": pyxis,
        "enroot_pyxis_pyxis_file": file_variables(node, "pyxis", "source", pyxis),
    }
    phases: tuple[tuple[Phase, Stage, dict[str, Json]], ...] = (
        ("preflight", Stage.SCHEDULER, files),
        ("install", Stage.SCHEDULER, files),
        ("configure", Stage.SCHEDULER, runs),
        # srun is asked, which knows the plugin when Slurm is there.
        ("verify", Stage.MONITORING, runs | {"enroot_pyxis_enroot_version": enroot}),
    )
    return [
        Step(stage=stage, role="enroot_pyxis", phase=phase, variables=variables)
        for phase, stage, variables in phases
    ]
