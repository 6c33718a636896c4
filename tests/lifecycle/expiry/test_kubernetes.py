"""Who uses a cluster of Kubernetes, since when it is unused, and what it takes near its end.

The audit log is that of an API server 1.35.4 under the role's policy, shortened; the API is a
double of kubectl, and the end's rule is evaluated in tests/inventory/kubernetes_objects.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, DownShell, LocalShell
from tests.lifecycle.kubernetes.spec import spec_of

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.down.expiry.announce import announce, withdraw
from gcluster.lifecycle.down.expiry.jobs import Jobs
from gcluster.lifecycle.down.expiry.kubernetes import read_idle
from gcluster.lifecycle.down.expiry.running_work import jobs_on
from gcluster.lifecycle.nodes.ssh import Answer, Unreachable
from gcluster.lifecycle.state import ExpiryAnnounced
from gcluster.schemas.catalog import load_catalog

HOSTS = ClusterInventory(cluster="trial", hosts=(HEAD,))
CATALOG = load_catalog()
ANNOUNCED = ExpiryAnnounced(kind="expires", due=4e9, earliest=4e9, why="over")
LINE = (
    '{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"363a8052",'
    '"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/{namespace}/{kind}/x/binding",'
    '"verb":"create","user":{{"username":"system:kube-scheduler","groups":["system:authenticated"]}}'
    ',"objectRef":{{"resource":"{kind}","namespace":"{namespace}","name":"x","apiVersion":"v1",'
    '"subresource":"binding"}},"responseStatus":{{"metadata":{{}},"status":"Success","code":201}},'
    '"requestReceivedTimestamp":"{at}","stageTimestamp":"{at}",'
    '"annotations":{{"authorization.k8s.io/decision":"allow"}}}}\n'
)
SHELL = """\
case "$1" in -s) sed 's|/var/log/kubernetes|{folder}|' | /bin/sh -s ;; *) exec /bin/sh "$@" ;; esac
"""
POD = r"{namespace}\037train-0\037{node}\037Running\037{owner}\037train" + r"\037" * 6 + r"\036"


def line(minutes: float, namespace: str = "physics", kind: str = "pods") -> str:
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    return LINE.format(namespace=namespace, kind=kind, at=at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))


class Plane:
    """A control plane: its kubectl, and its audit log."""

    def __init__(self, folder: Path) -> None:
        """Begin without pods, and with a log of an hour without any request."""
        self.folder = folder
        self.log = folder / "log"
        self.log.mkdir()
        self.shell = LocalShell(folder / "bin")
        self.shell.has("sudo", 'shift; exec "$@"')
        self.shell.has("sh", SHELL.format(folder=self.log))
        self.runs()
        self.wrote(line(60, "kube-system"))

    def runs(self, *pods: str) -> None:
        """Say which pods there are."""
        text = "".join(pods)
        self.shell.has(
            "kubectl",
            f'echo "$*" >>{self.folder}/asked\n'
            f"case \"$3\" in pods) printf '{text}' ;;"
            f" --server-side) cat >{self.folder}/given ;; esac",
        )

    def wrote(self, *lines: str, name: str = "audit.log", age_s: float = 0) -> None:
        """Write a file of the audit log."""
        path = self.log / name
        path.write_text("".join(lines))
        stamp = time.time() - age_s
        os.utime(path, (stamp, stamp))

    def query_jobs(self) -> Jobs:
        """Query as an expiry does."""
        return jobs_on(spec_of(), HOSTS, self.shell, CATALOG)

    def idle_min(self) -> float | None:
        """Return for how many whole minutes it reports the cluster as unused."""
        idle = self.query_jobs().idle_s
        return None if idle is None else round(idle / 60)


@pytest.fixture
def plane(tmp_path: Path) -> Plane:
    return Plane(tmp_path)


def test_pods_with_a_node_run_and_others_wait(plane: Plane) -> None:
    plane.runs(
        POD.format(namespace="physics", node="gpu001", owner="Job"),
        POD.format(namespace="chem", node="", owner="Job"),
        POD.format(namespace="physics", node="gpu001", owner="DaemonSet"),
        POD.format(namespace="web", node="gpu002", owner="ReplicaSet"),
    )
    jobs = plane.query_jobs()
    assert (jobs.running, jobs.waiting, jobs.idle_s) == (1, 1, None)
    assert jobs.why_not == "1 job runs"


@pytest.mark.parametrize("namespace", ["kube-system", "gcluster-system", "kueue-system"])
def test_what_runs_for_the_cluster_itself_is_no_job(plane: Plane, namespace: str) -> None:
    plane.runs(POD.format(namespace=namespace, node="gpu001", owner="Job"))
    assert plane.query_jobs().why_not == ""
    plane.wrote(line(60), line(5, namespace))
    assert plane.idle_min() == 60


def test_the_last_that_was_written_of_users_s_pods_has_since_when_it_is_idle(
    plane: Plane,
) -> None:
    plane.wrote(line(90), line(40), line(3, kind="configmaps"), line(2, "kube-system"))
    assert plane.idle_min() == 40


def test_files_before_the_newest_are_read_too(plane: Plane) -> None:
    plane.wrote(line(600, "kube-system"), line(500), name="audit-2026-11-22T00-00-00.000.log",
                age_s=9000)  # fmt: skip
    plane.wrote(line(400), line(300), name="audit-2026-11-22T09-00-00.000.log", age_s=5000)
    assert plane.idle_min() == 300


def test_it_is_idle_no_longer_than_can_be_known(plane: Plane) -> None:
    assert plane.idle_min() == 60


def test_without_a_log_idleness_is_unknown_and_jobs_are_not(plane: Plane) -> None:
    (plane.log / "audit.log").unlink()
    assert plane.query_jobs() == Jobs()


@pytest.mark.parametrize("text", ["", "2000\n", "2000\n\n\n", "x\n2026-11-22T10:00:00Z\n\n"])
def test_an_answer_that_was_cut_short_is_not_idle(text: str) -> None:
    assert read_idle(text) is None


class SecondIsOff(LocalShell):
    """The double of a session to two control planes, of which the second is off."""

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Answer:
        """Run the command here for all but the second."""
        if host.name == "head002":
            return Unreachable(reason="no route to host")
        return super().run(host, command, stdin=stdin, timeout_s=timeout_s)


def test_each_control_plane_has_to_report_that_it_was_requested_nothing(plane: Plane) -> None:
    both = ClusterInventory(
        cluster="trial", hosts=(HEAD, msgspec.structs.replace(HEAD, name="head002"))
    )
    assert jobs_on(spec_of(), both, plane.shell, CATALOG).idle_s is not None
    off = SecondIsOff(plane.folder / "bin")
    assert jobs_on(spec_of(), both, off, CATALOG).idle_s is None


def test_an_api_that_is_silent_keeps_the_cluster(plane: Plane) -> None:
    plane.shell.has("kubectl", "echo 'The connection to the server was refused' >&2; exit 1")
    assert "can't be queried for running jobs" in plane.query_jobs().why_not


def test_before_it_expires_jobs_that_reach_beyond_are_refused(plane: Plane) -> None:
    plane.shell.has("install", "exit 0")
    plane.shell.has("tee", "cat >/dev/null")
    plane.shell.has("chmod", "exit 0")
    announce(spec_of(), HOSTS, plane.shell, ANNOUNCED)
    applied = msgspec.json.decode((plane.folder / "given").read_text())
    policy, binding = applied["items"]
    assert policy["metadata"]["name"] == binding["spec"]["policyName"] == "gcluster-end"
    assert "timestamp('2096-10-02T07:06:40Z')" in str(policy["spec"]["validations"])
    assert "gcluster.local/cluster" not in str(policy["metadata"]), "or the next up would prune it"


def test_what_was_refused_is_taken_again_once_the_end_is_withdrawn(plane: Plane) -> None:
    plane.shell.has("rm", "exit 0")
    withdraw(spec_of(), HOSTS, plane.shell)
    assert (
        " delete validatingadmissionpolicybindings,validatingadmissionpolicies gcluster-end"
        in (plane.folder / "asked").read_text()
    )


def test_where_the_api_does_not_answer_the_announcement_is_an_error(plane: Plane) -> None:
    plane.shell.has("install", "exit 0")
    plane.shell.has("tee", "cat >/dev/null")
    plane.shell.has("chmod", "exit 0")
    plane.shell.has("kubectl", "echo 'The connection to the server was refused' >&2; exit 1")
    with pytest.raises(LifecycleError) as error:
        announce(spec_of(), HOSTS, plane.shell, ANNOUNCED)
    assert error.value.diagnostics[0].code == "GC1141"


def test_simulated_control_planes_run_no_jobs_and_are_reported_nothing(tmp_path: Path) -> None:
    head = msgspec.structs.replace(HEAD, connection="simulated")
    hosts = ClusterInventory(cluster="trial", hosts=(head,))
    dead = DownShell(tmp_path)
    assert jobs_on(spec_of(), hosts, dead, CATALOG) == Jobs()
    announce(spec_of(), hosts, dead, ANNOUNCED)
    withdraw(spec_of(), hosts, dead)
