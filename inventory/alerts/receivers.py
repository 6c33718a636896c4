"""Who is sent alerts: Alertmanager's configuration, by role alertmanager and by Kubernetes' chart.

Passwords and addresses that are secrets are files of their own, which it names; the role puts them
in the place of the names, for Alertmanager of 0.23 (Ubuntu 22.04) reads no such files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from ...schemas.spec.cluster import Alerts, MailAlerts
from ...schemas.spec.model import SpecModel
from ...schemas.structure.compose import read_data_file
from .owners import Owners
from .rules import inhibitions

MAIL_CA: Final = "mail-ca.pem"
"""File of the CA certificates that vouch for the mail server."""
_AGAIN: Final = {"critical": "4h", "warning": "1d"}
"""Severity -> time after which an alert that goes on is sent again."""


class _Messages(SpecModel, frozen=True):
    subject: str
    text: str
    chat: str
    jobs_owner: str
    pods_owner: str


@lru_cache(maxsize=1)
def messages() -> _Messages:
    """Return the texts of mail and chat, as Alertmanager's templates."""
    return read_data_file(Path(__file__).parent / "data/messages.yaml", _Messages)


def alertmanager_config(
    alerts: Alerts | None,
    files: str,
    hello: str,
    owners: Sequence[Owners] = (),
    scheduler: Literal["slurm", "kubernetes"] = "kubernetes",
) -> dict[str, Any]:
    """Return the configuration of a cluster's Alertmanager; its secrets are files in a folder.

    Args:
        alerts: receivers of the spec; None: alerts are on Alertmanager's page alone.
        files: folder with a file for each receiver's secret ("mail", "webhook", "slack"), and
            MAIL_CA.
        hello: name by which it greets mail servers.
        owners: who is mailed about their own jobs; all others get those alerts as well.
        scheduler: whose alerts explain others.
    """
    receivers = {} if alerts is None else dict(_receivers(alerts, files, hello))
    taken = {} if alerts is None else {name: getattr(alerts, name).severities for name in receivers}
    routes = [
        {
            "receiver": name,
            "matchers": [f'severity="{severity}"'],
            "continue": True,
            "repeat_interval": _AGAIN[severity],
        }
        for name, severities in taken.items()
        for severity in severities
    ]
    own: list[dict[str, Any]] = []
    if alerts is not None and alerts.mail is not None:
        for one in owners:
            server = _mail_server(alerts.mail, files, hello, one.text)
            receivers[one.name] = {"email_configs": [{"to": one.to, **server}]}
            route = {"receiver": one.name, "matchers": list(one.matchers), "continue": True}
            own.append(route | {"group_by": list(one.group_by)})
    return {
        "route": {
            "receiver": "page",
            "group_by": ["cluster", "alertname"],
            "group_wait": "10s",
            "group_interval": "2m",
            "repeat_interval": "1d",
            "routes": [*own, *routes],
        },
        "inhibit_rules": inhibitions(scheduler),
        "receivers": [
            {"name": "page"},
            *({"name": name, **configs} for name, configs in receivers.items()),
        ],
    }


def _receivers(alerts: Alerts, files: str, hello: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each receiver of the spec with its settings."""
    if alerts.mail is not None:
        server = _mail_server(alerts.mail, files, hello)
        yield "mail", {"email_configs": [{"to": to, **server} for to in alerts.mail.to]}
    if alerts.webhook is not None:
        hook = {"url_file": f"{files}/webhook", "send_resolved": True}
        yield "webhook", {"webhook_configs": [hook]}
    if alerts.slack is not None:
        chat: dict[str, Any] = {
            "api_url_file": f"{files}/slack",
            "send_resolved": True,
            "title": messages().subject,
            "title_link": "",
            "text": messages().chat,
            "fallback": messages().subject,
        }
        if alerts.slack.channel is not None:
            chat["channel"] = alerts.slack.channel
        yield "slack", {"slack_configs": [chat]}


def _mail_server(mail: MailAlerts, files: str, hello: str, text: str = "text") -> dict[str, Any]:
    server: dict[str, Any] = {
        "from": mail.sender,
        "smarthost": mail.server,
        "hello": hello,
        "require_tls": mail.tls,
        "send_resolved": True,
        "headers": {"Subject": messages().subject},
        # Text alone: what users call their jobs is no HTML.
        "html": "",
        "text": getattr(messages(), text),
    }
    if mail.user is not None:
        server |= {
            "auth_username": mail.user,
            "auth_identity": mail.user,
            "auth_password_file": f"{files}/mail",
        }
    if mail.ca is not None:
        server["tls_config"] = {"ca_file": f"{files}/{MAIL_CA}"}
    return server
