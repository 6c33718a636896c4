"""What a Grafana of the user's reads: dashboards, the data source, and where the dashboards are.

The dashboards' JSON is made of the table by Grafana's own SDK when it changes (.ci/dashboards.py)
and comes with gcluster as data: no command imports the SDK.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml

from ..alerts import Condition
from ..compile.steps import CompiledCluster
from .documents import board_files

_FOLDER = "/etc/grafana"
"""Configuration of Grafana's packages (deb and rpm)."""
_PORT = 9090


def grafana_files(compiled: CompiledCluster) -> dict[str, bytes]:
    """Return path below Grafana's configuration -> content; nothing for a cluster without metrics.

    Passwords are not in them: the data source names the file that has it.
    """
    steps = {step.key: step for group in compiled.groups for step in group.steps}
    if "prometheus.configure" not in steps:
        return {}
    has = tuple(_conditions(compiled))
    mine = f"gcluster-{compiled.cluster}"
    return {f"{mine}/{name}.json": text for name, text in board_files(compiled.cluster, has)} | {
        f"provisioning/datasources/{mine}.yaml": _yaml(_source(mine)),
        f"provisioning/dashboards/{mine}.yaml": _yaml(_provider(mine)),
    }


_HAS: Mapping[str, tuple[Condition, ...]] = {
    "dcgm_exporter": ("gpus", "nvidia"),
    "amd_exporter": ("gpus", "amd"),
    "kubernetes": ("kubernetes",),
    "ipmi_exporter": ("bmc",),
    "slurm_exporter": ("slurm",),
}
"""Role -> what a cluster has that gets it."""
_SWITCHES: Mapping[str, Condition] = {
    "slurm_exporter_accounting": "slurmdbd",
    "node_exporter_infiniband": "infiniband",
    "node_exporter_lustre": "lustre",
}
"""Variable of a role -> what a cluster has where it is on."""


def _conditions(compiled: CompiledCluster) -> Iterator[Condition]:
    """Yield what the cluster has, by the exporters that it gets."""
    for group in compiled.groups:
        for step in group.steps:
            yield from _HAS.get(step.role, ())
            yield from (has for name, has in _SWITCHES.items() if step.variables.get(name))


def _source(mine: str) -> dict[str, object]:
    """Return the data source; "$__file" is Grafana's own: it reads the file when it starts."""
    files = f"{_FOLDER}/{mine}"
    return {
        "apiVersion": 1,
        "datasources": [
            {
                "name": mine,
                "uid": mine,
                "type": "prometheus",
                "access": "proxy",
                "url": f"https://localhost:{_PORT}",
                "basicAuth": True,
                "basicAuthUser": "gcluster",
                "jsonData": {
                    "httpMethod": "POST",
                    "timeInterval": "15s",
                    "tlsAuthWithCACert": True,
                },
                "secureJsonData": {
                    "basicAuthPassword": f"$__file{{{files}/password}}",
                    "tlsCACert": f"$__file{{{files}/ca.pem}}",
                },
                "editable": False,
            }
        ],
    }


def _provider(mine: str) -> dict[str, object]:
    return {
        "apiVersion": 1,
        "providers": [
            {
                "name": mine,
                "folder": mine,
                "type": "file",
                "disableDeletion": False,
                "allowUiUpdates": False,
                "options": {"path": f"{_FOLDER}/{mine}"},
            }
        ],
    }


def _yaml(document: dict[str, object]) -> bytes:
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return f"# Written by gcluster compile.\n{text}".encode()
