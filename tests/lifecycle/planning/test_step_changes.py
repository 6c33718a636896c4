"""A plan says which steps drain nodes, how many at once, and how many jobs that waits for."""

from __future__ import annotations

import time

import msgspec
import pytest

from gcluster.inventory.compile import Step
from gcluster.inventory.compile.steps import Stage
from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.nodes.converge.pending import Pending, PendingStep
from gcluster.lifecycle.planning.changes import StepChange
from gcluster.lifecycle.planning.plan import NOT_RUNNING, step_changes
from gcluster.lifecycle.status.observe import Observation
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

SPEC = """\
apiVersion: gcluster/v1
name: lab
sites: {here: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: here, role: controller, hosts: head01}
  gpu: {site: here, machine: hgx-h100-8, hosts: "gpu[01-20]", cpu: {sockets: 2, cores: 48}}
scheduler: {type: slurm}
"""
DRIVER = Step(stage=Stage.DRIVERS, role="nvidia_driver", phase="install", variables={})


@pytest.fixture(scope="module")
def spec() -> ClusterSpec:
    """Give a spec of twenty nodes."""
    spec = load_text(SPEC, file="spec.yaml").spec
    assert spec is not None
    return spec


def nodes(*numbers: int) -> tuple[str, ...]:
    return tuple(f"gpu{number:02d}" for number in numbers)


def lines(
    spec: ClusterSpec,
    step: Step,
    *,
    on: tuple[str, ...],
    serving: tuple[str, ...],
    jobs: dict[str, tuple[str, ...]] | None = None,
    joined: str = "slurm.join",
    stopped: tuple[str, ...] = (),
) -> tuple[StepChange, ...]:
    """Return the plan's lines for one pending step."""
    ssh = SshTarget(user="ops")
    hosts = ClusterInventory(
        cluster="lab",
        hosts=tuple(
            Host(name=n, site="here", pool="gpu", role="compute", machine="hgx-h100-8", ssh=ssh)
            for n in nodes(*range(1, 21))
        ),
    )
    observation = Observation(
        sites=(),
        existing=hosts,
        desired=hosts,
        stamps={
            host.name: {joined: "x"} if host.name in serving else {}
            for host in hosts.hosts
            if host.name not in stopped
        },
        unreachable={},
        taken_at=time.monotonic(),
    )
    because = dict.fromkeys(on, "its inputs changed")
    pending = Pending(steps=(PendingStep(pool="gpu", step=step, digest="d", hosts=because),))
    return step_changes(spec, pending, observation, jobs)


def test_a_step_that_jobs_feel_rolls_over_nodes_in_service(spec: ClusterSpec) -> None:
    (line,) = lines(spec, DRIVER, on=nodes(1, 2), serving=nodes(1, 2), jobs={"gpu01": ("7",)})
    assert (line.disruption, line.at_once, line.jobs) == ("rolling", 2, 1)


def test_nodes_of_kubernetes_are_in_service_too(spec: ClusterSpec) -> None:
    (line,) = lines(
        spec, DRIVER, on=nodes(1, 2), serving=nodes(1, 2), jobs={}, joined="kubernetes.join"
    )
    assert (line.disruption, line.at_once, line.jobs) == ("rolling", 2, 0)


def test_of_a_node_that_does_not_run_it_is_not_reported_that_a_step_never_ran(
    spec: ClusterSpec,
) -> None:
    found = lines(spec, DRIVER, on=nodes(1, 2), serving=nodes(1), jobs={}, stopped=nodes(2))
    assert [(line.hosts, line.reason, line.disruption) for line in found] == [
        ("gpu01", "its inputs changed", "rolling"),
        ("gpu02", NOT_RUNNING, "none"),
    ]


def test_a_job_on_many_nodes_counts_once(spec: ClusterSpec) -> None:
    jobs = dict.fromkeys(nodes(1, 2, 3), ("7",))
    (line,) = lines(spec, DRIVER, on=nodes(1, 2, 3), serving=nodes(1, 2, 3), jobs=jobs)
    assert line.jobs == 1


def test_jobs_that_can_not_be_queried_are_unknown_and_not_none(spec: ClusterSpec) -> None:
    (line,) = lines(spec, DRIVER, on=nodes(1), serving=nodes(1))
    assert line.jobs is None


def test_a_node_that_never_joined_is_changed_in_place(spec: ClusterSpec) -> None:
    found = lines(spec, DRIVER, on=nodes(1, 2), serving=nodes(2))
    assert {line.hosts: line.disruption for line in found} == {
        "gpu01": "in-place",
        "gpu02": "rolling",
    }


def test_a_step_that_spares_jobs_is_in_place_everywhere(spec: ClusterSpec) -> None:
    step = msgspec.structs.replace(DRIVER, spares_jobs=True)
    (line,) = lines(spec, step, on=nodes(1, 2), serving=nodes(1, 2))
    assert line.disruption == "in-place"


def test_reading_disturbs_no_job(spec: ClusterSpec) -> None:
    step = msgspec.structs.replace(DRIVER, phase="verify")
    (line,) = lines(spec, step, on=nodes(1), serving=nodes(1))
    assert line.disruption == "none"


@pytest.mark.parametrize(
    ("policy", "parameters", "restarts"),
    [
        ("auto", ["iommu=pt"], {"gpu01"}),
        ("when-drained", ["iommu=pt"], {"gpu01", "gpu02"}),
        ("never", ["iommu=pt"], set()),
        ("when-drained", [], set()),
    ],
)
def test_a_step_that_may_restart_nodes_reports_it(
    spec: ClusterSpec, policy: str, parameters: list[str], restarts: set[str]
) -> None:
    variables = {"kernel_reboot": policy, "kernel_boot_parameters": parameters}
    step = Step(stage=Stage.BASE, role="kernel", phase="join", variables=variables)
    found = lines(spec, step, on=nodes(1, 2), serving=nodes(2))
    assert {line.hosts for line in found if "may restart the node" in line.reason} == restarts
