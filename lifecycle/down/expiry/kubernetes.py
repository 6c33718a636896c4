"""Use of a Kubernetes cluster before its end, and the refusal of jobs that would outlast it.

Kubernetes doesn't record when a node was last busy: jobs and their pods may be deleted. The audit
log of each control plane has every creation, binding, update and deletion of a pod; it is read from
its end.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from ....inventory.compile.kubernetes_objects.admission.rules import END_RULE, end_rule
from ....inventory.compile.kubernetes_objects.objects import FIELD_MANAGER, SYSTEM_NAMESPACE
from ....inventory.hosts import ClusterInventory, Host
from ....schemas.catalog import Catalog
from ...kubernetes.kubectl import ApiRefused, ApiSilent, Kubectl
from ...kubernetes.managed.login import kubectl_of
from ...kubernetes.workloads import see_work
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from .jobs import Jobs

_LIMIT_S = 60
_POD = '"objectRef":{"resource":"pods","namespace":"'
_USED = """\
cd /var/log/kubernetes && files=$(ls -t audit*.log) || exit 1
stamp() { sed -n 's/.*"stageTimestamp":"\\([^"]*\\)".*/\\1/p'; }
for file in $files; do oldest=$file; done
date +%s
head -n 1 "$oldest" | stamp
for file in $files; do
  last=$(grep -F '@POD@' "$file" | grep -v '@POD@\\(@SYSTEM@\\)"' | tail -n 1 | stamp)
  [ -z "$last" ] || break
done
echo "$last"
"""
"""Prints the current time, the log's first time, and the last write of a user's pod."""


def use_of(hosts: ClusterInventory, session: SshSession, catalog: Catalog) -> Jobs:
    """Query the API for current users, and the control planes for the time since the last use."""
    try:
        work = see_work(kubectl_of(session, hosts))
    except (ApiRefused, ApiSilent) as error:
        return Jobs(problem=str(error))
    own = own_namespaces(catalog)
    theirs = [w for w in work if not w.namespace.startswith("kube-") and w.namespace not in own]
    running = sum(bool(one.nodes) for one in theirs)
    return Jobs(
        running=running,
        waiting=len(theirs) - running,
        idle_s=None if theirs else _idle_s(hosts, session, own),
    )


def own_namespaces(catalog: Catalog) -> frozenset[str]:
    """Return the namespaces of gcluster and of add-ons: what runs there is no one's work."""
    return frozenset({SYSTEM_NAMESPACE, *(one.namespace for one in catalog.addons.values())})


def refuse_long_jobs(kubectl: Kubectl, earliest: float) -> None:
    """Have the API take only jobs that end before this time (seconds since 1970); repeatable.

    Raises:
        ApiRefused, ApiSilent: see `Kubectl.text`.
    """
    rule = end_rule(datetime.fromtimestamp(earliest, UTC))
    kubectl.text(
        *("apply", "--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}"),
        *("--validate=strict", "--filename=-"),
        stdin=msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": rule}).decode(),
    )


def accept_all_jobs(kubectl: Kubectl) -> None:
    """Have it take all jobs again; repeatable.

    Raises:
        ApiRefused, ApiSilent: see `Kubectl.text`.
    """
    kinds = "validatingadmissionpolicybindings,validatingadmissionpolicies"
    kubectl.text("delete", kinds, END_RULE, "--ignore-not-found")


def read_idle(text: str) -> float | None:
    """Parse what one control plane printed; None: unknown.

    A log without any pod means that there was none since the log begins.
    """
    clock, since, used, *_ = [*text.split("\n"), "", "", ""]
    try:
        begins, now = datetime.fromisoformat(used or since), float(clock)
    except ValueError:
        return None
    return max(0.0, now - begins.timestamp())


def _idle_s(hosts: ClusterInventory, session: SshSession, own: frozenset[str]) -> float | None:
    """Return the shortest time of all control planes: each logs only its own requests."""
    planes = [host for host in hosts.with_role("controller") if host.connection == "ssh"]
    known = [_idle_on(host, session, own) for host in planes]
    times = [time for time in known if time is not None]
    return min(times) if times and len(times) == len(known) else None


def _idle_on(host: Host, session: SshSession, own: frozenset[str]) -> float | None:
    system = "\\|".join(['kube-[^"]*', *sorted(own)])
    script = _USED.replace("@POD@", _POD).replace("@SYSTEM@", system)
    answer = session.run(host, as_root(host, ["sh", "-s"]), stdin=script, timeout_s=_LIMIT_S)
    if isinstance(answer, Unreachable) or answer.returncode != 0:
        return None
    return read_idle(answer.stdout)
