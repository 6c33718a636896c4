"""Alertmanager's configuration as role alertmanager writes it of what is compiled for a spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.inventory.compile import golden

from gcluster.lifecycle.bundle.role_tasks import filled_tasks, loaded, role_variables
from gcluster.schemas.load import load_text

ROLE = Path(__file__).parents[3] / "roles/alertmanager"
DEBIAN = {"distribution": "Debian", "distribution_major_version": "13", "os_family": "Debian"}
BOTH = ["critical", "warning"]
OWN = "/etc/gcluster/alertmanager"
"""The role's folder."""
SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler: {type: slurm}
"""
WASTE = {"waste_alert": {"below": "40%", "to_owner": True, "mail_domain": "example.edu"}}


def configuration(
    folder: Path, receivers: dict[str, Any] | None = None, spec: str = "", **secrets: str
) -> str:
    """Return what the role writes as alertmanager.yml of what is compiled for it.

    Args:
        folder: in which secrets are files, and the role's own folder.
        receivers: `monitoring.alerts` of the spec.
        spec: more lines of it; a `waste_alert` says who owns jobs.
        secrets: receiver -> what it needs.
    """
    monitoring = {"prometheus": True, **({"alerts": receivers} if receivers else {})}
    checked = load_text(
        f"{SPEC}{spec}monitoring: {json.dumps(monitoring | (WASTE if spec else {}))}\n"
    )
    assert checked.spec is not None, checked.diagnostics
    [step] = [
        step
        for group in golden.compiled(checked.spec).groups
        for step in group.steps
        if step.key == "alertmanager.configure"
    ]
    names = {name for name in step.secrets if name.endswith("_secret_file")}
    assert names == {f"alertmanager_{name}_secret_file" for name in secrets}
    text = str(step.variables["alertmanager_config"])  # braces are Alertmanager's, not Ansible's
    text = text.removeprefix("{% raw %}").removesuffix("{% endraw %}")
    variables = {
        "alertmanager_authority": "",
        "alertmanager_certificate": "",
        "alertmanager_password": "",
        **step.variables,
        "alertmanager_host": "node01",  # where tasks are filled
        "alertmanager_config": text.replace(OWN, str(folder)),
        **{
            f"alertmanager_{name}_secret_file": secret(folder, f"secret-{name}", value)
            for name, value in secrets.items()
        },
    }
    seen = role_variables(ROLE, variables, DEBIAN) | {"alertmanager_folder": str(folder)}
    tasks = filled_tasks(loaded(ROLE / "tasks/configure.yml"), seen, ROLE)
    [written] = [t["ansible.builtin.template"] for t in tasks if "ansible.builtin.template" in t]
    return str(written["content"])


def secret(folder: Path, name: str, value: str) -> str:
    (folder / name).write_text(value, encoding="utf-8")
    return str(folder / name)


def mail(server: str, **changed: Any) -> dict[str, Any]:
    return {
        "to": ["ops@example.edu", "night@example.edu"],
        "from": "gcluster@example.edu",
        "server": server,
        "user": "alerts",
        "password": "env:SMTP",
        "tls": True,
        "ca": "-----BEGIN CERTIFICATE-----\n",
        "severities": BOTH,
    } | changed


def plain_mail(server: str) -> dict[str, Any]:
    """Return a receiver of critical alerts by a server without a login."""
    made = mail(server, to=["ops@example.edu"], tls=False, severities=["critical"])
    return {key: value for key, value in made.items() if key not in {"user", "password", "ca"}}


def everyone() -> dict[str, Any]:
    """Return receivers of all kinds, as a spec has them."""
    return {
        "mail": mail("smtp.example.edu:587"),
        "webhook": {"url": "env:PAGER", "severities": ["critical"]},
        "slack": {"url": "env:CHAT", "channel": "#gpu", "severities": BOTH},
    }
