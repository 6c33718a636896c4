"""Kubernetes as launcher of the AllReduce: an Indexed Job with one pod per node.

The Job is created first and owns the other objects, and it ends and removes itself if gcluster is
killed. The log is that of its first pod, where mpirun runs; in it pods have their nodes' names.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import msgspec

from ....inventory.compile.kubernetes_objects.devices.fabric import FabricAccess, fabric_access
from ....inventory.compile.kubernetes_objects.facts import (
    KubernetesFacts,
    gpu_resource,
    has_channels,
    tolerations,
    units_per_gpu,
)
from ....inventory.compile.kubernetes_objects.jobs.allreduce import (
    RUN,
    AllReduceRun,
    companions,
    job,
)
from ....inventory.compile.kubernetes_objects.objects import (
    FIELD_MANAGER,
    SYSTEM_NAMESPACE,
    Object,
    owned,
    pause_image,
)
from ....inventory.compile.slurm.nodes import gpu_count
from ....inventory.hosts import Host
from ....schemas.derived.control_planes import managed_by
from ....schemas.diagnostics import Diagnostic, Severity
from ...cluster.progress import Finding, Reporter
from ...kubernetes.kubectl import ApiRefused, ApiSilent, Kubectl
from ...kubernetes.observe import see_nodes, see_pods
from ...nodes.ssh import Unreachable
from ..launch import Launch, launches
from .job_pods import JobPods, keys_of_a_run, see_job, see_warnings
from .launcher import Ended

POLL_S = 1.0
NODES_S = 10.0
"""Seconds between two polls of the nodes of pods that don't start."""
PASSED = "# mpirun ended with 0"
"""Last line of a log whose ranks ended well, as allreduce.sh writes it."""
END_S = 30.0
"""Seconds between the end of the log and that of the Job, at most."""
_IN_SYSTEM = f"--namespace={SYSTEM_NAMESPACE}"
_KINDS = "jobs,services,configmaps,secrets"
_LONGEST = 52
"""Characters of a Job's name, so that "-" and an index of ten digits still make a host's name."""


class KubernetesLauncher:
    """The API, through kubectl on a control plane."""

    def __init__(self, kubectl: Kubectl, facts: KubernetesFacts, report: Reporter) -> None:
        """Hold the way to the API, and what pods must be to run on these nodes."""
        self._kubectl = kubectl
        self._facts = facts
        self._report = report

    def idle(self, compute: tuple[Host, ...]) -> tuple[tuple[Host, ...], tuple[str, ...]]:
        """Return the hosts that nothing runs on that ends by itself or has GPUs; see `Launcher`.

        What a gate that was killed left is removed first: it would hold the nodes.
        """
        try:
            self._remove(f"--selector={RUN}")
            nodes = see_nodes(self._kubectl)
            pods = see_pods(self._kubectl)
        except (ApiSilent, ApiRefused):
            return compute, ()
        busy = {pod.node for pod in pods if pod.gpus or not (pod.is_of_its_node or pod.is_service)}
        free = {name for name, node in nodes.items() if not node.out and name not in busy}
        idle = tuple(host for host in compute if host.name in free)
        if not idle:
            return compute, ()
        return idle, tuple(host.name for host in compute if host.name not in free)

    def reaches_nics(self, launch: Launch) -> bool:
        """Return whether its pods have their node's adapters."""
        run = run_of(self._facts, launch)
        if run.own_programs:
            return False  # there is no SSH to the nodes to search for them
        return bool(run.access.resources)

    def run(self, launch: Launch, take: Callable[[str], None], limit_s: float) -> Ended:
        """Run one AllReduce as an Indexed Job; see `Launcher`."""
        run = msgspec.structs.replace(
            run_of(self._facts, launch), name=dns_label(launch.job), hosts=launch.nodes
        )
        until = time.monotonic() + limit_s
        try:
            self._create(run)
            ended = self._followed(run, take, until)
        except ApiRefused as refused:
            why = f"Kubernetes refused it: {refused}"
            ended = Ended(status=1, problem=why, started=False)
        except ApiSilent as silent:
            ended = Ended(status=1, problem=f"no API server answers: {silent}")
        finally:
            self._removed(run)
        return ended

    def _create(self, run: AllReduceRun) -> None:
        """Make the Job, then what it owns; its pods wait for that."""
        companions_of_run = [*companions(run), keys_of_a_run(run.name)]
        uid = self._apply([job(run)], "--output=jsonpath={.metadata.uid}").strip()
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": run.name, "uid": uid}
        for made in companions_of_run:
            made["metadata"]["ownerReferences"] = [owner]
        self._apply(companions_of_run)

    def _apply(self, made: list[Object], *options: str) -> str:
        items = [owned(one, self._facts.spec.name) for one in made]
        text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}).decode()
        words = ("apply", "--server-side", f"--field-manager={FIELD_MANAGER}", "--filename=-")
        return self._kubectl.text(*words, *options, stdin=text)

    def _followed(self, run: AllReduceRun, take: Callable[[str], None], until: float) -> Ended:
        """Wait for the pods, pass on the log, and return how it ended."""
        seen, away = self._start(run, until)
        if not seen.has_started:
            warned = see_warnings(self._kubectl, run.name)
            why = "; ".join([*away, seen.hindrance, *warned[-1:]])
            return Ended(
                status=1,
                problem=f"the job did not start ({why})",
                started=False,
                messages=(*seen.messages, *warned),
            )
        nodes = seen.hosts()
        for name, node in nodes.items():
            take(f"# gcluster: {name} runs on {node}\n")
        passed = False

        def take_line(line: str) -> None:
            nonlocal passed
            passed = line.strip() == PASSED
            take(line)

        answer = self._kubectl.stream(
            *("logs", "--follow", _IN_SYSTEM, seen.first, "--container=ranks"),
            take=renamed(run.name, nodes, take_line),
            timeout_s=max(1.0, until - time.monotonic()),
        )
        if passed:
            return Ended()
        end_by = min(until, time.monotonic() + END_S)
        last = self._wait(run, end_by, lambda job: job.has_ended)
        if last.result == "Complete":
            return Ended()
        warnings = (*last.messages, *see_warnings(self._kubectl, run.name))
        problem = last.failure_of_another(seen)
        if not last.has_ended:
            late = answer.reason if isinstance(answer, Unreachable) else "its job goes on"
            problem = f"its log came to no end: {late}"
        return Ended(status=last.status, problem=problem, messages=warnings)

    def _start(self, run: AllReduceRun, until: float) -> tuple[JobPods, tuple[str, ...]]:
        """Wait for the ranks; name the nodes that don't serve, for which no waiting helps."""
        while True:
            again = min(until, time.monotonic() + NODES_S)
            seen = self._wait(run, again, lambda job: job.has_started)
            if seen.has_started or seen.has_ended:
                return seen, ()
            away = self._away(run, seen)
            if away or time.monotonic() >= until:
                return seen, away

    def _away(self, run: AllReduceRun, seen: JobPods) -> tuple[str, ...]:
        nodes = see_nodes(self._kubectl)
        placed = {pod.node for pod in seen.pods}
        found = {name: nodes.get(name) for name in run.hosts}
        return tuple(
            f"{name}: {node.why if node is not None else 'it is not in the cluster'}"
            for name, node in found.items()
            if node is None or not node.ready or (node.cordoned and name not in placed)
        )

    def _wait(self, run: AllReduceRun, until: float, holds: Callable[[JobPods], bool]) -> JobPods:
        """Poll until a condition holds, the job can't continue, or the time is over."""
        while True:
            seen = see_job(self._kubectl, run.name, run.nodes)
            if holds(seen) or seen.has_ended or time.monotonic() >= until:
                return seen
            time.sleep(POLL_S)

    def _removed(self, run: AllReduceRun) -> None:
        """Remove the run; report what is in the way."""
        try:
            self._remove(f"--selector={RUN}={run.name}")
        except (ApiSilent, ApiRefused) as error:
            left = Diagnostic(
                code="GC1030",
                severity=Severity.WARNING,
                summary=f"{run.name} was not removed: {error}",
                hint="the next gcluster smoke removes it; by itself it goes within the hour",
            )
            self._report(Finding(diagnostic=left))

    def _remove(self, selector: str) -> None:
        """Remove runs; where no kubelet reports their pods' end, the API's deletion is enough."""
        options = ("--ignore-not-found", "--cascade=foreground", "--wait", "--timeout=60s")
        words = ("delete", _KINDS, _IN_SYSTEM, selector, *options)
        try:
            self._kubectl.text(*words, timeout_s=90)
        except ApiRefused:
            at_once = ("--force", "--grace-period=0", "--ignore-not-found", "--timeout=30s")
            self._kubectl.text("delete", "pods", _IN_SYSTEM, selector, *at_once)
            self._kubectl.text(*words, timeout_s=90)


def dns_label(name: str) -> str:
    """Return a job's name in Kubernetes' form; its end makes it unique."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[-_LONGEST:].strip("-")


def renamed(
    job_name: str, nodes: dict[str, str], take: Callable[[str], None]
) -> Callable[[str], None]:
    """Return a function that passes lines on with pods' names replaced by nodes' names."""
    pod = re.compile(rf"\b{re.escape(job_name)}-\d+(?:\.{re.escape(job_name)})?(?![\w.-])")

    def handed(line: str) -> None:
        take(pod.sub(lambda found: nodes.get(found[0].partition(".")[0], found[0]), line))

    return handed


JOB = "allreduce"
"""Stem of the runs' names; a run of `up` adds its own number."""


def kubernetes_runs(facts: KubernetesFacts) -> tuple[AllReduceRun, ...]:
    """Return a run for each fabric domain and partition, over all their hosts."""
    hosts = tuple(host for pool in facts.compute for host in facts.compute[pool])
    found = launches(facts.spec, hosts, JOB, facts.catalog)
    return tuple(run_of(facts, launch) for launch in found)


def run_of(facts: KubernetesFacts, launch: Launch) -> AllReduceRun:
    """Return a launch in Kubernetes' form; its pools are identical as far as pods can see."""
    pool_of = {host.name: host.pool for host in facts.inventory.hosts}
    pools = sorted({pool_of[name] for name in launch.nodes})
    named = {host.name for pool in pools for host in facts.compute[pool]} != set(launch.nodes)
    gpu = facts.machine(pools[0]).gpu
    own = facts.spec.smoke.allreduce.image if managed_by(facts.spec) is not None else None
    claims = facts.scheduler.gpu.resource_claims and gpu is not None
    return AllReduceRun(
        name=launch.job,
        nodes=len(launch.nodes),
        slots=max(1, launch.gpus),
        program=tuple(launch.program()),
        pools=tuple(pools),
        hosts=launch.nodes if named else (),
        tolerated=tolerations(facts, pools),
        gpu_resource=gpu_resource(facts, pools[0]),
        gpu_units=gpu_count(facts.machine(pools[0])) * units_per_gpu(facts, pools[0]),
        claimed=gpu.vendor if claims and gpu is not None else None,
        has_channels=all(has_channels(facts, pool) for pool in pools),
        access=_narrowest(facts, pools),
        environment=launch.variables(),
        image=own or pause_image(facts),
        own_programs=own is not None,
    )


def _narrowest(facts: KubernetesFacts, pools: list[str]) -> FabricAccess:
    """Return how all of these pools reach the fabric: not at all where they differ."""
    found = [fabric_access(facts, pool) for pool in pools]
    if all(one == found[0] for one in found):
        return found[0]
    return FabricAccess(environment=found[0].environment | {"NCCL_SOCKET_IFNAME": "eth0"})
