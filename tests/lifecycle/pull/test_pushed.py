"""What nodes that look after themselves still get by SSH: secrets, and what makes them able to."""

from __future__ import annotations

import msgspec
import pytest
from tests.lifecycle.controller import HEAD

from gcluster.inventory.compile import CompiledCluster, Group
from gcluster.inventory.compile.steps import Stage, Step
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.nodes.converge.pending import pending_steps
from gcluster.lifecycle.operations.gitops.pull.converge import pushed_and_pulled


def step(key: str, **secrets: str) -> Step:
    role, _, phase = key.partition(".")
    return Step(
        stage=Stage.SCHEDULER,
        role=role,
        phase=phase,  # type: ignore[arg-type]
        variables={},
        secrets=secrets,
    )


STEPS = (
    step("base.configure"),
    step("munge.install"),
    step("munge.configure", munge_key_file="munge"),
    step("self_converge.install"),
    step("self_converge.configure", self_converge_signers_file="converge/signers"),
    step("self_converge.verify"),
    step("slurm.configure"),
)
SERVES = {"slurm.join": "old", "munge.configure": "old"}
PULLS = SERVES | {"self_converge.configure": "old"}


def pushed(has: dict[str, str]) -> tuple[set[str], bool]:
    """Return what a node with these stamps gets over SSH, and whether it does the rest itself."""
    host = msgspec.structs.replace(HEAD, name="gpu1", pool="gpu", role="compute")
    compiled = CompiledCluster(
        cluster="demo", groups=(Group(name="gpu", hosts=("gpu1",), steps=STEPS),)
    )
    stamps = {"gpu1": has}
    push, pulls = pushed_and_pulled(
        pending_steps(compiled, stamps, {"munge": "1", "converge/signers": "1"}),
        ClusterInventory(cluster="demo", hosts=(host,)),
        stamps,
    )
    return {item.step.key for item in push.steps}, pulls == {"gpu1"}


@pytest.mark.parametrize(
    ("has", "wanted"),
    [
        (
            {},
            {
                "base.configure",
                "munge.install",
                "munge.configure",
                "self_converge.install",
                "self_converge.configure",
            },
        ),
        (SERVES, {"munge.configure", "self_converge.install", "self_converge.configure"}),
        (PULLS, {"munge.configure", "self_converge.configure"}),
    ],
    ids=["never joined", "serves and never pulled", "pulls"],
)
def test_a_node_gets_what_it_needs_to_continue_alone_and_does_the_rest_itself(
    has: dict[str, str], wanted: set[str]
) -> None:
    assert pushed(has) == (wanted, True)
