"""What Prometheus, Alertmanager and exporters read from Secrets: `up` fills them from the vault."""

from __future__ import annotations

from typing import Final

import msgspec

from .....schemas.derived.control_planes import managed_by, watched_by_roles
from .....schemas.spec import ClusterSpec
from ....alerts import MAIL_CA
from ...system.monitoring import (
    ALERTS_PREFIX,
    AUTHORITY_SECRET,
    EXPORTER_SECRET,
    PASSWORD_SECRET,
    REMOTE_SECRET,
)

NAMESPACE: Final = "gcluster-monitoring"
STACK: Final = "gcluster-monitoring"
"""Secret of Prometheus, Alertmanager and Grafana."""
EXPORTER: Final = "gcluster-node-exporter"
"""Secret of the exporters on nodes: their certificate alone."""
AUTHORITY: Final = "authority.pem"
REMOTE_USER, REMOTE_PASSWORD, REMOTE_CA = "remote-user", "remote-password", "remote-ca.pem"
GRAFANA_USER, GRAFANA_PASSWORD = "grafana-user", "grafana-password"  # keys
USER: Final = "gcluster"
"""Grafana's administrator, as the user of Prometheus under Slurm."""


class StackSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A Secret: what each of its keys holds."""

    vault: dict[str, str] = {}
    """Key -> secret of the cluster's vault."""
    text: dict[str, str] = {}
    """Key -> what is no secret."""


def stack_secrets(spec: ClusterSpec) -> dict[str, StackSecret]:
    """Return the Secrets of NAMESPACE by name; none where no chart sets up monitoring."""
    monitoring = spec.monitoring
    if watched_by_roles(spec) or monitoring is None or not monitoring.prometheus:
        return {}
    vault, text = {AUTHORITY: AUTHORITY_SECRET}, {}
    alerts, remote = monitoring.alerts, monitoring.remote_write
    if alerts is not None:
        vault |= {name: f"{ALERTS_PREFIX}{name}" for name in alerts.references}
        if alerts.mail is not None and alerts.mail.ca is not None:
            text[MAIL_CA] = alerts.mail.ca
    if remote is not None:
        text |= {} if remote.user is None else {REMOTE_USER: remote.user}
        text |= {} if remote.ca is None else {REMOTE_CA: remote.ca}
        vault |= {} if remote.password is None else {REMOTE_PASSWORD: REMOTE_SECRET}
    if monitoring.grafana:
        text[GRAFANA_USER] = USER
        vault[GRAFANA_PASSWORD] = PASSWORD_SECRET
    certificate = {"tls.crt": EXPORTER_SECRET, "tls.key": EXPORTER_SECRET}
    return {
        STACK: StackSecret(vault=vault, text=text),
        EXPORTER: StackSecret(vault=certificate),
    }


def figures_reach(spec: ClusterSpec) -> bool:
    """Whether `up` and `smoke` reach a control plane by SSH, to leave their figures there."""
    return managed_by(spec) is None
