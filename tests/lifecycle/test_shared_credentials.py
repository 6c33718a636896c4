"""What reaching nodes needs is in the state: a machine that never saw the cluster can go on.

Two machines are two sets of gcluster's own directories; the state between them is a bucket of moto.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.lifecycle.state.emulators import s3

from gcluster.lifecycle.cluster import places
from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.shared_credentials import store_host_keys, write_credentials
from gcluster.lifecycle.state import acquire
from gcluster.lifecycle.state.audit.artifacts import read_artifacts
from gcluster.lifecycle.up.run import Run
from gcluster.stacks.io.ssh import public_text

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites:
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {{cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}}
pools:
  head: {{site: east, role: controller, machine: m7i.xlarge, public_address: true}}
  gpu: {{site: east, machine: p5.48xlarge, count: 1}}
scheduler: {{type: slurm}}
secrets: {{provider: age, key: env:GCLUSTER_TEST_KEY}}
state: {state}
"""
_KEYS = b'{"i-1":["ssh-ed25519 AAAA"]}'


@pytest.fixture(scope="module")
def bucket() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Run moto for the file."""
    with ExitStack() as running:
        yield running.enter_context(s3())


@pytest.fixture
def machine(
    bucket: tuple[str, str, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Callable[[str], Cluster]:
    """Return what opens the cluster on the machine of a name: nothing but the spec is on it."""
    begin, query, environment = bucket
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    from pyrage import x25519  # noqa: PLC0415 - once, for the key of the fixture

    monkeypatch.setenv("GCLUSTER_TEST_KEY", str(x25519.Identity.generate()))
    spec = tmp_path / "cluster.yaml"
    spec.write_text(_SPEC.format(state=f"{begin}/{request.node.name}{query}"), encoding="utf-8")

    def at(name: str) -> Cluster:
        for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            monkeypatch.setenv(variable, str(tmp_path / name / variable))
        return open_cluster(str(spec))

    return at


def test_looking_makes_no_key(machine: Callable[[str], Cluster]) -> None:
    cluster = machine("a")
    write_credentials(cluster, cluster.workdir)
    assert not (cluster.workdir / "id_ed25519").exists()
    assert cluster.store.list("secrets") == []


def test_the_key_of_the_nodes_is_the_same_on_every_machine(
    machine: Callable[[str], Cluster],
) -> None:
    first = machine("a")
    first.identify()
    write_credentials(first, first.workdir, making=True)
    key, public = _key(first), public_text(first.workdir / "id_ed25519")

    second = machine("b")
    assert not (second.workdir / "id_ed25519").exists()
    write_credentials(second, second.workdir)

    assert (_key(second), public_text(second.workdir / "id_ed25519")) == (key, public)
    assert (second.workdir / "id_ed25519").stat().st_mode & 0o777 == 0o600
    stored = [first.store.get(name) or b"" for name in first.store.list("secrets")]
    assert not any(b"PRIVATE KEY" in data for data in stored)


def test_a_key_that_an_earlier_version_made_is_kept(machine: Callable[[str], Cluster]) -> None:
    cluster = machine("a")
    cluster.identify()
    from gcluster.stacks.io.ssh import ensure_client_key  # noqa: PLC0415 - as that version did

    before = ensure_client_key(cluster.workdir).read_bytes()
    write_credentials(cluster, cluster.workdir, making=True)
    assert _key(cluster) == before
    assert cluster.vault.reveal("ssh-client") == before


def test_host_keys_that_one_machine_read_are_known_to_the_next(
    machine: Callable[[str], Cluster],
) -> None:
    first = machine("a")
    first.identify()
    (first.workdir / "aws-east").mkdir()
    (first.workdir / "aws-east" / "host-keys.json").write_bytes(_KEYS)
    store_host_keys(first)

    second = machine("b")
    write_credentials(second, second.workdir)

    assert (second.workdir / "aws-east" / "host-keys.json").read_bytes() == _KEYS


def test_what_a_run_left_in_files_is_in_the_state(machine: Callable[[str], Cluster]) -> None:
    first = machine("a")
    first.identify()
    with acquire(first.store, ["east"], reason="up") as lock, Run(first, "up", lock) as run:
        (run.directory / "ansible-1").mkdir()
        (run.directory / "ansible-1" / "stdout").write_text("PLAY RECAP")
        run.finish(Exit.OK)

    data = read_artifacts(machine("b").store, run.id)

    assert data is not None
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == ["ansible-1/stdout"]


def test_two_machines_cannot_both_hold_a_site(
    machine: Callable[[str], Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_JOB_URL", "https://ci.example/jobs/7")
    first = machine("a")
    first.identify()
    with acquire(first.store, ["east"], reason="up"):
        with (
            pytest.raises(LifecycleError) as caught,
            acquire(machine("b").store, ["east"], reason="up"),
        ):
            raise AssertionError
        (message,) = caught.value.diagnostics
        assert "lock id east/1, taken" in message.detail
        assert "https://ci.example/jobs/7" in message.detail
        assert "gcluster unlock demo --lock east/1" in message.hint
    with acquire(machine("b").store, ["east"], reason="up") as lock:
        assert lock.epochs == {"east": 2}


def _key(cluster: Cluster) -> bytes:
    assert places.work_path(cluster.id) == cluster.workdir
    return (cluster.workdir / "id_ed25519").read_bytes()
