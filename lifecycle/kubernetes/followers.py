"""kube-proxy and CoreDNS, which kubeadm installed, come to a new version after every node has.

A node that waits for its jobs has the images of its own version alone, where they come in an
archive.
"""

from __future__ import annotations

from ...schemas.diagnostics import Diagnostic, Severity
from ..observe import Observation
from ..progress import Reporter, StageProgress
from ..ssh import SshSession, Unreachable
from ..ssh.arguments import as_root
from ..status.slurm import last_words
from .settle import JOINED

UPGRADED = "/etc/kubernetes/gcluster/upgraded-to"
"""Is there on control planes that have come to another version since they were made."""
PROGRAM = "/usr/local/libexec/gcluster/kubernetes-upgrade.py"
_LIMIT_S = 600
"""kubeadm asks the API server a few times, and two rollouts are waited for two minutes each."""


def bring_followers(
    observation: Observation, session: SshSession, report: Reporter
) -> tuple[Diagnostic, ...]:
    """Have them follow where a control plane was upgraded and no node is behind it any more.

    Returns:
        What went wrong: an error for each control plane that could not (GC1006).
    """
    late = []
    for host in observation.desired.with_role("controller"):
        if host.connection != "ssh" or JOINED not in observation.stamps.get(host.name, {}):
            continue
        line = f"[ ! -e {UPGRADED} ] || exec {PROGRAM} --addons"
        answer = session.run(host, as_root(host, ["sh", "-c", line]), timeout_s=_LIMIT_S)
        if isinstance(answer, Unreachable):
            why = answer.reason
        elif answer.returncode != 0:
            why = last_words(answer)
        else:
            if said := answer.stdout.strip():
                report(StageProgress(name="converge", done=0, total=0, detail=said))
            continue
        late.append(
            Diagnostic(
                code="GC1006",
                severity=Severity.ERROR,
                summary=f"kube-proxy and CoreDNS stay at the version before: {host.name}: {why}",
                hint="run the same command again: it goes on",
            )
        )
    return tuple(late)
