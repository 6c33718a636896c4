"""A cluster under Kubernetes in which one AllReduce goes through the moments of a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from tests.golden_files import CASES, read_cases
from tests.lifecycle.kubernetes.api_double import ApiDouble

from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts, kubernetes_facts
from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.nodes.ssh import Answer, SshResult
from gcluster.lifecycle.smoke.judging.verdict import Expectation, Wire
from gcluster.lifecycle.smoke.launch import Launch
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler: {type: kubernetes}
"""
NODES = ("gpu001", "gpu002")
LAUNCH = Launch(
    job="gcluster-smoke-ab12cd-main-1",
    label="main-1",
    partition="main",
    nodes=NODES,
    min_bytes=8,
    max_bytes=1 << 20,
    iterations=3,
)
JOB = LAUNCH.job
EXPECTED = Expectation(
    ranks=2,
    min_bytes=8,
    max_bytes=1 << 20,
    nodes=NODES,
    node_count=2,
    wire=Wire(fabric="ethernet", simulated=True),
)
RECORDED: str = read_cases(CASES / "smoke.yaml")["kubernetes"]["log"]
"""What the first pod of two on local nodes printed."""


def host(name: str) -> Host:
    """Return a host by its name."""
    role, machine = ("compute", "sim.h100x8") if name.startswith("gpu") else ("controller", None)
    return Host(
        name=name,
        site="here",
        pool=name.rstrip("0123456789"),
        role=role,
        machine=machine,
        ssh=SshTarget(user="root"),
    )


def two_nodes() -> KubernetesFacts:
    """Return what two simulated nodes under Kubernetes are compiled from."""
    loaded = load_text(SPEC, file="demo.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    hosts = tuple(map(host, ("head001", *NODES)))
    inventory = ClusterInventory(cluster="demo", hosts=hosts)
    return kubernetes_facts(loaded.spec, inventory, load_catalog())


def pod(index: int, **fields: str) -> dict[str, str]:
    """Return the row of a pod of the job, which runs unless `fields` say something else."""
    placed = {"node": NODES[index], "phase": "Running"}
    return {"name": f"{JOB}-{index}-x{index}yz", "index": str(index), **placed, **fields}


class Cluster(ApiDouble):
    """The API of a cluster in which a job goes through the moments that a test gives."""

    def __init__(
        self,
        *moments: Mapping[str, Sequence[Mapping[str, str]]],
        log: str = "",
        answer: Answer | None = None,
    ) -> None:
        """Take the rows of pods and jobs at each look, the last one for ever; and the log."""
        super().__init__({})
        self.moments = list(moments)
        self.log = log
        self.answer = answer or SshResult(returncode=0, stdout="", stderr="")
        self.streamed: list[tuple[str, ...]] = []
        self.refused = ""
        """What the next deletion is refused with."""

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Go on to the next moment at each look at the pods."""
        if arguments[:2] == ("get", "jobs,pods") and self.moments:
            self.objects = dict(self.moments.pop(0) if len(self.moments) > 1 else self.moments[0])
        answer = super().run(*arguments, stdin=stdin, timeout_s=timeout_s)
        if arguments[0] == "delete" and self.refused:
            answer, self.refused = SshResult(returncode=1, stdout="", stderr=self.refused), ""
        return answer

    def stream(self, *arguments: str, take: Callable[[str], None], timeout_s: float) -> Answer:
        """Hand over the log."""
        assert timeout_s > 0
        self.streamed.append(arguments)
        for line in self.log.splitlines(keepends=True):
            take(line)
        return self.answer

    def made(self, kind: str) -> dict[str, object]:
        """Return an object of a kind that was applied."""
        lists = [json.loads(text) for text in self.given if text]
        found = [one for given in lists for one in given["items"] if one["kind"] == kind]
        assert isinstance(found[0], dict)
        return found[0]


RUNS = {"pods": [pod(0), pod(1)], "jobs": [{"conditions": "", "why": ""}]}
DONE = {
    "pods": [pod(0, phase="Succeeded", exit="0"), pod(1, phase="Succeeded", exit="0")],
    "jobs": [{"conditions": "SuccessCriteriaMet=True Complete=True"}],
}
SCHEDULING = {
    "pods": [pod(0, phase="Pending", node=""), pod(1, phase="Pending", node="")],
    "nodes": [{"name": name, "ready": "True"} for name in NODES],
}


def failed(*pods: Mapping[str, str], why: str = "") -> dict[str, Sequence[Mapping[str, str]]]:
    """Return the moment at which the job has failed."""
    return {"pods": pods, "jobs": [{"conditions": "Failed=True", "why": why}]}
