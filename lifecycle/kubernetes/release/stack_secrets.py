"""Secrets that monitoring's pods read: receivers' passwords, certificates, logins.

As with `logins`, no plan shows a value: a Secret's annotation has the versions of what it was made
from in the cluster's vault, and `up` writes one only where these differ.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable

from ....inventory.compile.kubernetes_objects.monitoring.secrets import (
    GRAFANA_PASSWORD,
    NAMESPACE,
    STACK,
    StackSecret,
    stack_secrets,
)
from ....inventory.compile.kubernetes_objects.objects import (
    DOMAIN,
    Object,
    new,
    owned,
)
from ....schemas.spec import ClusterSpec
from ...cluster.progress import Reporter, StageProgress
from ...secrets.makers import (
    issue_by_newest_authority,
    make_secrets,
    secret_versions,
    trust_another_authority,
    trust_newest_authority_alone,
)
from ...secrets.vault import SecretVault
from ..kubectl import Kubectl
from ..objects import DIGEST
from .logins import SecretChanges, apply_secrets, existing_digests

STACK_LABEL = f"{DOMAIN}/monitoring"
"""On each of these Secrets, with its name."""
SETTLED_S = 180.0
"""Seconds after which pods go by what a Secret has by now. Prometheus' operator copies the
authority at once; kubelets renew the files within a minute (kubernetes.io, Secrets: "the kubelet
sync period"); kube-rbac-proxy looks at its own each minute (--tls-reload-interval), and Prometheus
reads the authority at each connection. A minute is left over."""
_GRAFANA = "deployment/grafana"
"""The chart's, by the name that the values give it."""
_STARTS_WITHIN_S = 180


def keep_stack_secrets(vault: SecretVault, spec: ClusterSpec) -> None:
    """Make and read what the Secrets hold, and keep it encrypted in the state.

    Raises:
        LifecycleError: what the spec refers to can't be read, and none is kept (GC959).
    """
    make_secrets(vault, spec, _vaulted(stack_secrets(spec)))


def stack_secret_changes(kubectl: Kubectl, vault: SecretVault, spec: ClusterSpec) -> SecretChanges:
    """Compare the existing Secrets with those of the spec; nothing is queried where it has none.

    Those of a spec that drops monitoring go with their namespace.

    Raises:
        ApiSilent, ApiRefused: see `Kubectl.text`.
        LifecycleError: the state can't be read.
    """
    wanted = stack_secrets(spec)
    if not wanted:
        return SecretChanges()
    versions = secret_versions(vault, spec, _vaulted(wanted))
    digests = {(NAMESPACE, name): _digest(one, versions) for name, one in wanted.items()}
    there = existing_digests(kubectl, f"--namespace={NAMESPACE}", f"--selector={STACK_LABEL}")
    return SecretChanges(
        stale={key: digest for key, digest in digests.items() if there.get(key) != digest}
    )


def settle_stack_secrets(
    kubectl: Kubectl, vault: SecretVault, spec: ClusterSpec, changes: SecretChanges
) -> None:
    """Write the Secrets that differ.

    Raises:
        ApiSilent, ApiRefused: see `Kubectl.text`; the message holds no password.
        LifecycleError: a secret can't be decrypted.
    """
    wanted = stack_secrets(spec)
    made = [
        owned(_object(vault, key[1], wanted[key[1]], digest), spec.name)
        for key, digest in changes.stale.items()
    ]
    apply_secrets(kubectl, made)


def rotate_stack_secrets(
    kubectl: Kubectl,
    vault: SecretVault,
    spec: ClusterSpec,
    report: Reporter,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, ...]:
    """Make the authority, the exporters' certificate and Grafana's password again, in three turns.

    Prometheus trusts both authorities while the exporters change. Grafana reads its password when
    it starts: its pod is made again. Returns the names of the Secrets.

    Raises:
        ApiSilent, ApiRefused: see `Kubectl.text`; `up` writes what the vault has by then.
        LifecycleError: the state can't be read or written.
    """
    wanted = stack_secrets(spec)
    stack_secret_changes(kubectl, vault, spec)  # who doesn't answer now is given nothing new
    turns: tuple[tuple[str, Callable[[], None]], ...] = (
        ("both authorities are trusted", lambda: trust_another_authority(vault, spec.name)),
        ("exporters get new certificates", lambda: issue_by_newest_authority(vault)),
        ("the new authority alone is trusted", lambda: trust_newest_authority_alone(vault)),
    )
    for number, (detail, turn) in enumerate(turns, start=1):
        report(StageProgress(name="rotate", done=number - 1, total=len(turns), detail=detail))
        turn()
        settle_stack_secrets(kubectl, vault, spec, stack_secret_changes(kubectl, vault, spec))
        if number < len(turns):
            sleep(SETTLED_S)
    if GRAFANA_PASSWORD in wanted[STACK].vault:
        where = (_GRAFANA, f"--namespace={NAMESPACE}")
        kubectl.text("rollout", "restart", *where)
        waits = f"--timeout={_STARTS_WITHIN_S}s"
        kubectl.text("rollout", "status", *where, waits, timeout_s=_STARTS_WITHIN_S + 30)
    return tuple(sorted(wanted))


def _vaulted(wanted: dict[str, StackSecret]) -> tuple[str, ...]:
    return tuple(sorted({name for one in wanted.values() for name in one.vault.values()}))


def _digest(one: StackSecret, versions: dict[str, str]) -> str:
    """Return a hash of all that a Secret is made from, of what is secret its version."""
    held = {key: versions[name] for key, name in one.vault.items()}
    content = json.dumps([held, one.text], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _object(vault: SecretVault, name: str, one: StackSecret, digest: str) -> Object:
    held = {key: text.encode() for key, text in one.text.items()}
    held |= {key: vault.reveal(secret) for key, secret in one.vault.items()}
    return new(
        "v1",
        "Secret",
        name,
        namespace=NAMESPACE,
        labels={STACK_LABEL: name},
        annotations={DIGEST: digest},
        type="Opaque",
        data={key: base64.b64encode(held[key]).decode() for key in sorted(held)},
    )
