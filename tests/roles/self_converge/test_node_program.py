"""The program of role self_converge takes only what its cluster signed, and waits for jobs."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.operations.gitops.pull.bundle import (
    PoolBundle,
    manifest,
    signed,
    signers,
    signing_key,
)

sys.path.insert(0, str(Path(__file__).parents[3] / "roles/self_converge/files"))
from self_converge import bundle, node, settings, slurm, stamps  # the path comes first

DIGEST = "a" * 64


class Mirror:
    """A folder that a real HTTP server serves, and the key whose signature the node knows."""

    def __init__(self, folder: Path, address: str) -> None:
        """Make the key; nothing is published yet."""
        self.folder = folder
        self.settings = settings.Settings(
            cluster="demo",
            pool="gpu",
            mirror=address,
            collector="http://127.0.0.1:1",
            interval=5,
        )
        self.key = folder.parent / "key"
        self.key.touch(mode=0o600)
        self.key.write_bytes(signing_key())

    def publish(self, serial: int, *, drain: bool = False, pushed: bool = False) -> None:
        """Publish a bundle of one step."""
        step = {"key": "base.configure", "digest": DIGEST, "drain": drain, "pushed": pushed}
        what = PoolBundle(pool="gpu", file=f"bundle-{'b' * 64}.tar.gz", content=b"", steps=(step,))
        text = manifest("demo", what, ("ansible.tar.gz", "c" * 64), serial, 0)
        (self.folder / "gpu.signed").write_bytes(signed(text, self.key))

    def look(self) -> node.Outcome:
        """Let the node look once, up to its report."""
        return node.follow_published(self.settings, "gpu001", granted=False)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    served = tmp_path / "served"
    served.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(served))
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    made = Mirror(served, f"http://127.0.0.1:{server.server_port}")
    trusted = tmp_path / "signers"
    trusted.write_bytes(signers(made.key.read_bytes(), "converge@demo"))
    carried = tmp_path / "stamps"
    carried.mkdir()
    monkeypatch.setattr(bundle, "SIGNERS", trusted)
    monkeypatch.setattr(bundle, "STATE", tmp_path / "state")
    monkeypatch.setattr(node, "STATE", tmp_path / "state")
    monkeypatch.setattr(stamps, "STAMPS", carried)
    yield made
    server.shutdown()
    server.server_close()


def stamp(key: str, digest: str = DIGEST) -> None:
    (stamps.STAMPS / key).write_text(digest + "\n")


def test_a_node_that_carries_every_stamp_has_converged(mirror: Mirror) -> None:
    mirror.publish(3)
    stamp("base.configure")
    assert (mirror.look().state, mirror.look().serial) == ("converged", 3)


def test_a_manifest_that_was_changed_on_the_way_is_refused(mirror: Mirror) -> None:
    mirror.publish(3)
    path = mirror.folder / "gpu.signed"
    path.write_bytes(path.read_bytes().replace(b"base.configure", b"base.install__"))
    found = mirror.look()
    assert found.state == "refused"
    assert "not signed by this cluster" in found.reason


def test_a_manifest_of_another_key_is_refused(mirror: Mirror) -> None:
    mirror.key.write_bytes(signing_key())
    mirror.publish(3)
    assert "not signed by this cluster" in mirror.look().reason


def test_an_old_manifest_is_never_taken_again(mirror: Mirror, tmp_path: Path) -> None:
    mirror.publish(3)
    settings.write_atomically(tmp_path / "state/state.json", b'{"serial": 4}')
    assert "number 3, and 4 was here before" in mirror.look().reason


def test_a_bundle_that_is_not_what_was_signed_is_not_unpacked(
    mirror: Mirror, tmp_path: Path
) -> None:
    mirror.publish(3)
    (mirror.folder / f"bundle-{'b' * 64}.tar.gz").write_bytes(b"something else")
    found = mirror.look()
    assert (found.state, "not what the manifest was signed for" in found.reason) == (
        "refused",
        True,
    )
    assert not (tmp_path / "state/bundle" / ("b" * 64)).exists()


def test_a_package_mirror_that_is_away_is_reported(mirror: Mirror) -> None:
    assert mirror.look().state == "away"
    assert "nothing is published" in mirror.look().reason


def test_a_step_that_comes_over_ssh_is_waited_for(mirror: Mirror) -> None:
    mirror.publish(3, pushed=True)
    assert (mirror.look().state, mirror.look().step) == (
        "blocked",
        "base.configure",
    )


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (slurm.Use(out=False, ours=False, jobs=()), "waits until Slurm gives it"),
        (slurm.Use(out=True, ours=True, jobs=("train",)), "jobs run here: train"),
        (None, "the jobs here are unknown"),
    ],
    ids=["idle", "busy", "slurm is silent"],
)
def test_a_node_in_service_waits_where_a_job_could_feel_it(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, use: Any, why: str
) -> None:
    mirror.publish(3, drain=True)
    stamp("slurm.join")
    monkeypatch.setattr(node, "_use", lambda _: use)
    found = mirror.look()
    assert (found.state, why in found.reason) == ("waiting", True)


def test_a_grant_counts_only_while_its_job_alone_is_there() -> None:
    ours = slurm.Use(out=False, ours=False, jobs=("gcluster-update-gpu001",))
    other = slurm.Use(out=False, ours=False, jobs=("gcluster-update-gpu001", "train"))
    gone = slurm.Use(out=False, ours=False, jobs=())
    answer = [bool(node.must_wait(use, "gpu001", granted=True)) for use in (ours, other, gone)]
    assert answer == [False, True, True]


@pytest.mark.usefixtures("mirror")
def test_stamps_are_read_as_they_are_over_ssh() -> None:
    stamp("base.configure")
    stamp("base.install", "no digest")
    assert json.loads(json.dumps(stamps.read_stamps())) == {"base.configure": DIGEST}
