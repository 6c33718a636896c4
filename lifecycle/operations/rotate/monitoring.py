"""The authority, the certificates and the password of what watches a cluster.

Certificates of both authorities are trusted while hosts, or pods of Kubernetes' chart, change: so
Prometheus and the exporters know each other all the while.
"""

from __future__ import annotations

from ....inventory.compile.kubernetes_objects.monitoring.secrets import stack_secrets
from ....inventory.compile.system.monitoring import AUTHORITY_SECRET
from ....inventory.hosts import ClusterInventory
from ....schemas.derived.control_planes import watched_by_roles
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Reporter
from ...kubernetes.kubectl import ApiRefused, ApiSilent
from ...kubernetes.managed.login import kubectl_of
from ...kubernetes.release.stack_secrets import rotate_stack_secrets
from ...nodes.ssh import SshSession
from ...secrets.makers import (
    issue_by_newest_authority,
    trust_another_authority,
    trust_newest_authority_alone,
)
from ...up.run import Run
from .kept import Rotated, compiled_for, give, in_turns, only


def rotate_monitoring(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> Rotated:
    """Make the authority, certificates and password of monitoring again, and give them to hosts.

    In three turns over all hosts: both authorities are trusted, then the certificates change, then
    the old authority is trusted no more. A turn that leaves a host is the last: that host would not
    know the others' certificates.

    Raises:
        LifecycleError: nothing watches the cluster (GC908), or a host can't be reached (GC999).
    """
    cluster, vault = run.cluster, run.cluster.vault
    if not watched_by_roles(cluster.spec):
        return _rotate_chart(run, hosts, session, report)
    compiled = compiled_for(cluster, hosts)
    steps = [step for group in compiled.groups for step in group.steps]
    compiled = only(compiled, {s.role for s in steps if AUTHORITY_SECRET in s.secrets.values()})
    names = {host for group in compiled.groups for host in group.hosts}
    if not names or vault.version(AUTHORITY_SECRET) is None:
        raise failure("GC908", f"{cluster.name} has no monitoring")
    return in_turns(
        lambda turn: give(run, compiled, hosts, session, report, names=names, remake=turn),
        lambda: trust_another_authority(vault, cluster.name),
        lambda: issue_by_newest_authority(vault),
        lambda: trust_newest_authority_alone(vault),
    )


def _rotate_chart(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> Rotated:
    """Do it under Kubernetes' chart, whose pods read Secrets.

    Raises:
        LifecycleError: nothing watches the cluster (GC908), no API server answers (GC1005), or it
            refuses (GC1006).
    """
    cluster, vault = run.cluster, run.cluster.vault
    if not stack_secrets(cluster.spec) or vault.version(AUTHORITY_SECRET) is None:
        raise failure("GC908", f"{cluster.name} has no monitoring")
    again = f"gcluster up {cluster.spec_path}, then gcluster rotate monitoring {cluster.spec_path}"
    try:
        secrets = rotate_stack_secrets(kubectl_of(session, hosts), vault, cluster.spec, report)
    except ApiSilent as silent:
        raise failure("GC1005", f"no API server answers: {silent}", hint=again) from silent
    except ApiRefused as refused:
        raise failure(
            "GC1006", f"Kubernetes refused: {refused}", hint=again, detail=refused.words
        ) from refused
    return Rotated(cluster=cluster.name, changed=secrets, exit_code=Exit.OK)
