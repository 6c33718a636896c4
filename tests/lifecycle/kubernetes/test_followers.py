"""What kubeadm installed follows an upgrade; a cluster never upgraded is left alone."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.lifecycle.controller import LocalShell

from gcluster.lifecycle.cluster.progress import Progress, StageProgress
from gcluster.lifecycle.kubernetes import settle as followers
from gcluster.lifecycle.status.observe import Observation

from .spec import hosts_of, spec_of

SAID = "brought kube-proxy and CoreDNS to 1.35.4"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalShell:
    """A control plane whose program writes down its arguments."""
    made = LocalShell(tmp_path / "bin")
    made.has("sudo", 'shift; exec "$@"')
    made.has("upgrade", f"echo $* >>{tmp_path}/asked; echo {SAID}")
    monkeypatch.setattr(followers, "PROGRAM", shlex.quote(str(tmp_path / "bin" / "upgrade")))
    monkeypatch.setattr(followers, "UPGRADED", shlex.quote(str(tmp_path / "upgraded-to")))
    return made


def observed(*joined: str) -> Observation:
    hosts = hosts_of(spec_of())
    stamps = {name: {"kubernetes.join": "0" * 64} for name in joined}
    return Observation(
        sites=(), existing=hosts, desired=hosts, stamps=stamps, unreachable={}, taken_at=0.0
    )


def test_they_follow_where_a_control_plane_was_upgraded(
    session: LocalShell, tmp_path: Path
) -> None:
    answer: list[Progress] = []
    (tmp_path / "upgraded-to").write_text("1.35.4\n")
    assert followers.bring_followers(observed("head", "gpu001"), session, answer.append) == ()
    assert (tmp_path / "asked").read_text() == "--addons\n"
    assert [result.detail for result in answer if isinstance(result, StageProgress)] == [SAID]


@pytest.mark.parametrize("joined", [("head", "gpu001"), ()], ids=["never-upgraded", "never-made"])
def test_nothing_is_queried_where_nothing_was_upgraded(
    session: LocalShell, tmp_path: Path, joined: tuple[str, ...]
) -> None:
    answer: list[Progress] = []
    if not joined:
        (tmp_path / "upgraded-to").write_text("1.35.4\n")
    assert followers.bring_followers(observed(*joined), session, answer.append) == ()
    assert answer == []
    assert not (tmp_path / "asked").exists()


def test_what_they_could_not_is_an_error_with_its_words(
    session: LocalShell, tmp_path: Path
) -> None:
    (tmp_path / "upgraded-to").write_text("1.35.4\n")
    session.has("upgrade", "echo kubeadm failed >&2; exit 1")
    (answer,) = followers.bring_followers(observed("head"), session, lambda _: None)
    assert (answer.code, answer.is_error) == ("GC1006", True)
    assert answer.summary.endswith("head: kubeadm failed")
