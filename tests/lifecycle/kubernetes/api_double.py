"""The double of the API: rows of objects by kind, and a record of the calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp

from gcluster.lifecycle.kubernetes import observe as look
from gcluster.lifecycle.kubernetes.kubectl import ApiSilent, Kubectl
from gcluster.lifecycle.kubernetes.release import logins
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession
from gcluster.lifecycle.scheduler import kubernetes as rolling
from gcluster.lifecycle.smoke.launching import job_pods
from gcluster.lifecycle.status import kubernetes as report

_TABLES = (
    look.NODE_FIELDS,
    look.POD_FIELDS,
    logins.FIELDS,
    report.JOB_FIELDS,
    report.QUOTA_FIELDS,
    report.EVENT_FIELDS,
    report.WORKLOAD_FIELDS,
    rolling.RETRY_FIELDS,
    job_pods.FIELDS,
    job_pods.EVENT_FIELDS,
)
"""Everything that is queried in rows."""
_KNOWN = {"nodes", "pods", "jobs", "events", "resourcequotas"}


class ApiDouble(Kubectl):
    """Answers `get KIND` with the rows that a test gives; the rest is taken and written down."""

    def __init__(
        self, objects: Mapping[str, Sequence[Mapping[str, str]]], *, silent: str = ""
    ) -> None:
        """Take kind -> rows, of which a field that is missing is ""; or why no server answers."""
        super().__init__(SshSession(Path(mkdtemp())), [])
        self.objects = dict(objects)
        self.silent = silent
        self.calls: list[tuple[str, ...]] = []
        self.given: list[str] = []

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Answer as kubectl does."""
        del timeout_s
        if self.silent:
            raise ApiSilent(self.silent)
        self.calls.append(arguments)
        self.given.append(stdin or "")
        if arguments[0] != "get":
            return SshResult(returncode=0, stdout="", stderr="")
        kinds = arguments[1].split(",")
        unknown = [kind for kind in kinds if kind not in {*self.objects, *_KNOWN}]
        if unknown:
            words = f'error: the server doesn\'t have a resource type "{unknown[0]}"'
            return SshResult(returncode=1, stdout="", stderr=words)
        found = [
            {"kind": kind.removesuffix("s").capitalize(), **row}
            for kind in kinds
            for row in self.objects.get(kind, ())
        ]
        text = "".join(_row(arguments[-1], row) for row in found)
        return SshResult(returncode=0, stdout=text, stderr="")


def _row(template: str, row: Mapping[str, str]) -> str:
    """Return a row in the order in which a template lists its fields."""
    body = template.removeprefix("--output=jsonpath={range .items[*]}")
    paths = re.split(r'\{"\\u001f"\}|\{"\\u001e"\}\{end\}', body)[:-1]
    fields = next(names for names in _TABLES if list(names.values()) == paths)
    return "\x1f".join(row.get(name, "") for name in fields) + "\x1e"
