"""A cluster runs its whole life with known secrets, and nothing that it leaves has one of them.

Looked through are the state with journal and applied spec, what lies on this machine, plan file,
compiled tree and audit trail, what is printed, errors with their whole texts too, what a telemetry
collector gets, and the arguments of every process that was started. Real nodes add their runs'
logs, the certificate and Ansible's processes (`tests/e2e/test_local_cluster.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.secrets.ciphertexts import Ciphertext

from .collector import listening
from .leak_search import Watcher, found_in, hooked, spellings

_SPEC = """\
apiVersion: gcluster/v1
name: planted
sites: {lab: {provider: simulated}}
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 2}
scheduler:
  type: slurm
  rest_api: true
  accounting: {database: db.example.edu, password: 'env:PLANTED_DATABASE'}
users:
  source: sssd
  ldap: ldaps://dir.example.edu
  bind_dn: cn=reader,dc=example,dc=edu
  bind_password: file:{folder}/bind
secrets: {provider: age, key: 'env:PLANTED_KEY'}
"""
KEY = "AGE-SECRET-KEY-1NRX0Q9N5QDDYWDNNDAK6JNHTL7RKHGHNQPYVUYLYKNQGJ7HN07LQ0CWTKT"
"""Of the tests alone."""
KNOWN_SECRETS = {"PLANTED_DATABASE": "plover-database-7731", "PLANTED_KEY": KEY}
BIND = "plover-bind-4419"
OTHER = {
    "PLANTED_DATABASE": 'plover-other-8852-longer-than-any-chunk\n "breaks" $(quoting)',
    "PLANTED_KEY": "AGE-SECRET-KEY-1NOT-ONE-AT-ALL-QYVUYLYKNQGJ7HN07LQ0CWTKT",
}
"""What commands are to trip over."""
_TRIPS = ("PLANTED_KEY", "PLANTED_DATABASE")


@pytest.fixture
def lived(own_places: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[str], Watcher]:
    """Return a folder in which a cluster lived, what its commands printed, and who watched."""
    for name, value in KNOWN_SECRETS.items():
        monkeypatch.setenv(name, value)
    folder = own_places / "here"
    folder.mkdir()
    (folder / "bind").write_text(BIND)
    spec = folder / "cluster.yaml"
    spec.write_text(_SPEC.replace("{folder}", str(folder)))
    monkeypatch.setenv("GCLUSTER_AUDIT", str(folder / "audit.jsonl"))
    program = str(Path(sys.executable).with_name("gcluster"))
    answer = []
    more, _ = hooked(folder / "hook")
    with Watcher(str(folder)) as watcher, listening() as (collector, url):
        more["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
        for words in (
            ["validate", str(spec)],
            ["compile", str(spec), "--out", str(folder / "compiled")],
            ["plan", str(spec), "--format", "json", "--out", str(folder / "a.gcplan")],
            ["plan", str(spec), "--format", "markdown"],
            ["up", str(spec), "--plan", str(folder / "a.gcplan"), "--format", "json"],
            ["plan", str(spec)],
            ["status", str(spec), "--format", "json"],
            ["history", str(spec), "--events"],
            ["history", str(spec), "--format", "json"],
            ["show", str(spec), "2", "--format", "json"],
            ["show", str(spec), "2"],
            ["explain", "GC905"],
        ):
            done = _run([program, *words], **more)
            assert "Traceback" not in done.stderr, done.stderr
            assert done.returncode == 0, (words, done.stderr)
            answer.append(f"$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        spec.write_text(spec.read_text().replace("count: 2", "count: 3"))
        for name in _TRIPS:
            for words in (["up", str(spec), "--yes"], ["status", str(spec)]):
                tripped = {**more, name: OTHER[name], "GCLUSTER_DEBUG": "1"}
                done = _run([program, *words], **tripped)
                answer.append(f"$ {name} {' '.join(words)}\n{done.stdout}{done.stderr}")
    assert '"changed": true' in answer[4], answer[4]
    assert any("Traceback" in text for text in answer), "no error was seen with all of its words"
    for number, request in enumerate(collector.sent):
        (folder / f"telemetry-{number}").write_bytes(request)
    return folder, answer, watcher


def _run(words: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, **env}
    )


def test_nothing_that_a_cluster_leaves_has_a_secret_but_as_ciphertext(
    lived: tuple[Path, list[str], Watcher], own_places: Path
) -> None:
    folder, answer, watcher = lived
    (folder / "bind").unlink()
    cluster = open_cluster(str(folder / "cluster.yaml"), running=True)
    made = {
        name: cluster.vault.reveal(name)
        for name in ("munge", "slurm-jwt", "slurmdbd", "directory")
        if cluster.vault.version(name)
    }
    assert {"munge", "slurm-jwt", "slurmdbd", "directory"} == made.keys()
    assert made["slurmdbd"].decode() == OTHER["PLANTED_DATABASE"], "the newest"
    known = [BIND, *KNOWN_SECRETS.values(), *OTHER.values()]
    secrets = [*made.values(), *(secret.encode() for secret in known)]
    assert watcher.seen > 0
    artefacts = found_in(own_places)
    assert any(name.startswith("here/.gcluster") for name in artefacts)
    assert any("compiled" in name for name in artefacts)
    assert any(name.endswith(".gcplan") for name in artefacts)
    for part in (
        "/events/",
        "/applied/",
        "audit.jsonl",
        "telemetry-0",
        "hook/started",
    ):
        assert any(part in name for name in artefacts), part
    artefacts |= {f"printed {n}": text.encode() for n, text in enumerate(answer)}
    artefacts["arguments"] = "\n".join(watcher.arguments).encode()
    leaks = {
        (name, spelling[:12])
        for name, data in artefacts.items()
        for secret in secrets
        for spelling in spellings(secret)
        if spelling in data
    }
    assert leaks == set()
    stored = sorted((folder / ".gcluster" / "planted" / "secrets").rglob("*.json"))
    assert len(stored) >= 3
    for path in stored:
        box = msgspec.json.decode(path.read_bytes(), type=Ciphertext).box
        assert box.startswith(b"age-encryption.org/v1\n-> X25519 ")
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_search_finds_a_known_secret(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"password": BIND}))
    assert any(s in data for data in found_in(tmp_path).values() for s in spellings(BIND.encode()))
