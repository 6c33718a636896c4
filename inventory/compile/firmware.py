"""The role firmware: a report from every machine, and updates of the parts that the spec names."""

from __future__ import annotations

import msgspec

from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step


@role_compiler("firmware", after=("node_health",))
def firmware_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role firmware; none for nodes that have no firmware of their own.

    The phase update is there only where the spec says `firmware.update`, and drains the node first.
    """
    if not node.is_machine:
        return []
    said = node.pool.firmware
    if said is None:
        return [_step("install", {}), _step("verify", {})]
    asked: dict[str, Json] = {
        "firmware_bmc": said.bmc,
        "firmware_credentials_file": said.credentials,
        "firmware_ca_file": said.certificates or "",
        "firmware_wanted": {
            target: {k: v for k, v in msgspec.to_builtins(wanted).items() if v is not None}
            for target, wanted in sorted(said.wanted.items())
        },
    }
    update: dict[str, Json] = asked | {
        "firmware_update": said.update,
        "firmware_slurm": node.pool.role == "compute",
    }
    named = [_step("update", update)] if said.update else []
    return [_step("install", {}), *named, _step("verify", asked)]


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    """Return a step; only an update hurts jobs."""
    return Step(
        stage=Stage.MONITORING,
        role="firmware",
        phase=phase,
        variables=variables,
        spares_jobs=phase != "update",
    )
