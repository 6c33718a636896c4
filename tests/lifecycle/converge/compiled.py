"""Small compiled clusters, and any, for the tests of what is pending."""

from __future__ import annotations

from hypothesis import strategies as st

from gcluster.inventory.compile import CompiledCluster, Group, Step
from gcluster.inventory.compile.steps import PHASES, Phase, Stage

ROLES = {"base": Stage.BASE, "munge": Stage.SCHEDULER, "slurm": Stage.SCHEDULER}


def step(role: str, phase: Phase, **variables: object) -> Step:
    secrets = {"munge_key_file": "munge"} if (role, phase) == ("munge", "configure") else {}
    return Step(
        stage=ROLES[role],
        role=role,
        phase=phase,
        variables=dict(variables),
        secrets=secrets,
        independent=role == "munge",
    )


def cluster(*groups: Group) -> CompiledCluster:
    return CompiledCluster(cluster="demo", groups=groups)


def group(name: str, count: int, *steps: Step) -> Group:
    hosts = tuple(f"{name}{number}" for number in range(1, count + 1))
    return Group(name=name, hosts=hosts, steps=steps)


SMALL = cluster(
    group(
        "head",
        1,
        step("base", "install"),
        step("munge", "configure"),
        step("slurm", "configure", slurm_role="controller", slurm_nodes="gpu[1-2]"),
        step("slurm", "verify"),
    ),
    group(
        "gpu",
        2,
        step("base", "install"),
        step("munge", "configure"),
        step("slurm", "configure", slurm_role="node"),
        step("slurm", "join"),
        step("slurm", "verify"),
    ),
)
"""A controller and two nodes."""

_phases = st.lists(st.sampled_from(PHASES), min_size=1, unique=True).map(
    lambda phases: sorted(phases, key=PHASES.index)
)


@st.composite
def any_cluster(draw: st.DrawFn) -> CompiledCluster:
    """Draw a cluster of up to three pools whose roles come in one order."""
    groups = []
    for number in range(draw(st.integers(1, 3))):
        steps = [
            step(role, phase, **{f"{role}_{phase}_value": draw(st.integers(0, 2))})
            for role in ROLES
            if draw(st.booleans())
            for phase in draw(_phases)
        ]
        groups.append(group(f"pool{number}x", draw(st.integers(1, 3)), *steps))
    return cluster(*groups)
