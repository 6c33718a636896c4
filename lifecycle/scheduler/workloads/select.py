"""The queue of a cluster's workloads, Slurm's or Kubernetes', and what a workload is there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from ....inventory.compile.kubernetes_objects.devices.nvlink import channel_pools
from ....inventory.compile.kubernetes_objects.facts import KubernetesFacts, kubernetes_facts
from ....inventory.compile.kubernetes_objects.objects import Object
from ....inventory.hosts import ClusterInventory
from ....inventory.workloads import batch_script
from ....inventory.workloads.checkpoints import WriteSpeed
from ....inventory.workloads.kubernetes import (
    COMMAND,
    pod_templates,
    workload_objects,
    workload_text,
)
from ....schemas.spec import KubernetesScheduler, SlurmScheduler, Workload
from ....stacks.registry import provider
from ...cluster.cluster import Cluster
from ...cluster.open_site import inventory
from ...cluster.outcome import Exit, failure
from ...kubernetes.managed.login import kubectl_of
from ...nodes.ssh import SshSession
from ...operations.selection import controller_of
from ...status.waste.kubernetes import metrics_on
from .follow import JobLog, Log, Queue
from .jobs import JobQueue
from .kubernetes import KubernetesLog, KubernetesQueue, checkpoint_program
from .progress import ReadUse, use_of


class Submission(msgspec.Struct, frozen=True):
    """A workload as its scheduler takes it."""

    text: str
    """The script, or the objects as YAML: what `--dry-run` prints."""
    objects: Sequence[Object] = ()
    """Under Kubernetes."""


def submission(
    cluster: Cluster,
    name: str,
    workload: Workload,
    measured: Mapping[str, WriteSpeed],
    hosts: ClusterInventory,
) -> Submission:
    """Return what is submitted for a workload.

    Raises:
        LifecycleError: the cluster has no scheduler (GC1201).
    """
    spec, catalog = cluster.spec, cluster.catalog
    if isinstance(spec.scheduler, SlurmScheduler):
        return Submission(batch_script(spec, catalog, name, workload, measured))
    if not isinstance(spec.scheduler, KubernetesScheduler):
        raise failure(
            "GC1201",
            f"{spec.name} has no scheduler, which runs workloads",
            exit_code=Exit.SPEC,
        )
    facts = kubernetes_facts(spec, hosts, catalog)
    objects = workload_objects(facts, name, workload, checkpoint_program(), measured)
    if name not in spec.workloads:
        objects[-1]["metadata"]["labels"][COMMAND] = "true"
    return Submission(workload_text(objects), objects)


def planned(
    cluster: Cluster, name: str, workload: Workload, measured: Mapping[str, WriteSpeed]
) -> Submission:
    """Return what would be submitted; the cluster need not exist."""
    spec, catalog = cluster.spec, cluster.catalog
    hosts = [
        host
        for site, one in spec.sites.items()
        for host in provider(one.provider, catalog).planned_hosts(spec, site)
    ]
    return submission(cluster, name, workload, measured, inventory(spec, hosts))


def submit(cluster: Cluster, queue: Queue, what: Submission, user: str | None) -> str:
    """Submit it and return the job's id; raises as the queues' own `submit`."""
    if isinstance(queue, KubernetesQueue):
        return queue.submit(_as_user(cluster, what.objects, user), user)
    assert isinstance(queue, JobQueue)  # noqa: S101  # for mypy
    return queue.submit(what.text, user)


def _as_user(cluster: Cluster, objects: Sequence[Object], user: str | None) -> Sequence[Object]:
    """Have the containers run as the user, where the spec says their number."""
    uid = next((one.uid for one in cluster.spec.local_users if one.name == user), None)
    if uid is None:
        return objects
    for pod in pod_templates(objects):
        for container in pod["spec"]["containers"]:
            container["securityContext"]["runAsUser"] = uid
    return objects


def open_queue(cluster: Cluster, hosts: ClusterInventory, session: SshSession) -> Queue:
    """Return the queue of a cluster; raises LifecycleError (GC1201) where it has none."""
    scheduler = cluster.spec.scheduler
    if isinstance(scheduler, KubernetesScheduler):
        facts: KubernetesFacts = kubernetes_facts(cluster.spec, hosts, cluster.catalog)
        kubectl = kubectl_of(session, hosts)
        return KubernetesQueue(
            kubectl,
            has_sets="jobset" in facts.named_addons,
            has_trainer="kubeflow-trainer" in facts.named_addons,
            has_domains=bool(channel_pools(facts)),
        )
    if not isinstance(scheduler, SlurmScheduler):
        raise failure(
            "GC1201", f"{cluster.spec.name} has no scheduler, so no jobs", exit_code=Exit.SPEC
        )
    return JobQueue(session, controller_of(hosts, session))


def open_use(cluster: Cluster, hosts: ClusterInventory, session: SshSession) -> ReadUse | None:
    """Return what reads how busy a job's GPUs are; None: the spec has no monitoring."""
    monitoring = cluster.spec.monitoring
    if monitoring is None or not monitoring.prometheus:
        return None
    query = metrics_on(cluster.spec, hosts, session)
    return lambda state: use_of(query, state, time.time())


def open_log(queue: Queue, hosts: ClusterInventory, session: SshSession) -> Log:
    """Return the log of one job of a queue."""
    if isinstance(queue, KubernetesQueue):
        return KubernetesLog(queue)
    return JobLog(session, hosts)
