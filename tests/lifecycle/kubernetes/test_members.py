"""Control planes that go leave etcd first, one by one; its answers are those of etcd 3.6.5."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.members import leave_etcd
from gcluster.lifecycle.nodes.ssh import Answer, SshResult, SshSession, Unreachable
from gcluster.lifecycle.planning.changes import SitePlan
from gcluster.lifecycle.status.observe import Observation
from gcluster.stacks.provider import Effect, Resource, ResourceChange

from .spec import spec_of

IDS = {"cp1": "69b38ac7138de88d", "cp2": "9e737febb6b99eee", "cp3": "61f97220ab052a12"}
STAMPS = {name: {"kubernetes.join": "0" * 64} for name in IDS}


class Etcd(SshSession):
    """The double of etcd behind the control planes' own program."""

    def __init__(self, folder: Path, *members: str) -> None:
        """Begin with these members."""
        super().__init__(folder)
        self.members = list(members or IDS)
        self.calls: list[str] = []
        self.refusals: list[str] = []
        self.silent = False

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Answer:
        """Answer as etcdctl does."""
        del stdin, timeout_s
        self.calls.append(f"{host.name}: {command}")
        if self.silent:
            return Unreachable(reason="no route to host")
        program, *words = command.removeprefix("sudo -n ").split()
        assert program == "/usr/local/libexec/gcluster/kubernetes-etcd.sh"
        if words[:3] == ["etcdctl", "member", "list"]:
            rows = (f"{IDS[m]}, started, {m}, https://{m}:2380, https://{m}:2379, false\n"
                    for m in self.members)  # fmt: skip
            new = "8336f59306ffefd4, unstarted, , https://cp9:2380, , false\n"
            return SshResult(returncode=0, stdout="".join(rows) + new, stderr="")
        if self.refusals:
            words_of_it = self.refusals.pop(0)
            return SshResult(returncode=1, stdout="", stderr=f'{{"level":"warn"}}\n{words_of_it}\n')
        (name,) = [name for name, identity in IDS.items() if identity == words[3]]
        self.members.remove(name)
        answer = f"Member {IDS[name]} removed from cluster f2cb1557076fcb4d\n"
        return SshResult(returncode=0, stdout=answer, stderr="")


def _planes(names: Collection[str]) -> ClusterInventory:
    hosts = tuple(msgspec.structs.replace(HEAD, name=name) for name in names)
    return ClusterInventory(cluster="trial", hosts=hosts)


def observed(*desired: str, gone: Collection[str] = (), effect: Effect = "delete") -> Observation:
    changes = tuple(
        ResourceChange(effect=effect, resource=Resource(kind="node", name=name, pool="head"))
        for name in gone
    )
    return Observation(
        sites=(SitePlan(site="lab", provider="local", changes=changes),),
        existing=_planes(desired),
        desired=_planes(desired),
        stamps=STAMPS,
        unreachable={},
        taken_at=0.0,
    )


def leave(etcd: Etcd, observation: Observation) -> tuple[str, ...]:
    clock = count()
    return leave_etcd(
        spec_of(), observation, etcd, clock=lambda: float(next(clock)), sleep=lambda _: None
    )


def test_those_that_the_spec_has_no_more_leave_by_word_of_one_that_stays(tmp_path: Path) -> None:
    etcd = Etcd(tmp_path)
    assert leave(etcd, observed("cp2", gone=["cp1", "cp3"])) == ("cp1", "cp3")
    assert etcd.members == ["cp2"]
    assert all(line.startswith("cp2: ") for line in etcd.calls)


@pytest.mark.parametrize("effect", ["replace", "create"])
def test_one_that_is_recreated_or_again_leaves_too(tmp_path: Path, effect: Effect) -> None:
    etcd = Etcd(tmp_path)
    assert leave(etcd, observed(*IDS, gone=["cp3"], effect=effect)) == ("cp3",)


def test_a_host_that_was_not_deleted_leaves_when_the_spec_drops_it(tmp_path: Path) -> None:
    etcd = Etcd(tmp_path)
    assert leave(etcd, observed("cp1")) == ("cp2", "cp3")


def test_where_all_stay_no_member_is_removed(tmp_path: Path) -> None:
    etcd = Etcd(tmp_path)
    assert leave(etcd, observed(*IDS)) == ()
    assert len(etcd.calls) == 1


def test_the_last_member_is_not_removed(tmp_path: Path) -> None:
    etcd = Etcd(tmp_path, "cp1")
    assert leave(etcd, observed("cp1", gone=["cp1", "cp2", "cp3"], effect="replace")) == ()
    assert etcd.calls == []


def test_etcd_is_queried_again_while_it_settles_and_a_removed_member_counts_as_removed(
    tmp_path: Path,
) -> None:
    etcd = Etcd(tmp_path)
    etcd.refusals = ["Error: etcdserver: unhealthy cluster"] * 3
    assert leave(etcd, observed("cp1", "cp2", gone=["cp3"])) == ("cp3",)
    etcd = Etcd(tmp_path)
    etcd.refusals = ["Error: etcdserver: member not found"]
    assert leave(etcd, observed("cp1", "cp2", gone=["cp3"])) == ("cp3",)


def test_no_machine_goes_that_etcd_keeps(tmp_path: Path) -> None:
    etcd = Etcd(tmp_path)
    etcd.refusals = ["Error: etcdserver: unhealthy cluster"] * 99
    with pytest.raises(LifecycleError) as error:
        leave(etcd, observed("cp1", "cp2", gone=["cp3"]))
    (message,) = error.value.diagnostics
    assert (message.code, message.summary) == (
        "GC1006", "etcd on cp1 keeps cp3 as members: Error: etcdserver: unhealthy cluster"
    )  # fmt: skip


def test_an_etcd_that_is_silent_stops_only_what_takes_a_member_away(tmp_path: Path) -> None:
    etcd = Etcd(tmp_path)
    etcd.silent = True
    assert leave(etcd, observed("cp1", "cp2")) == ()
    with pytest.raises(LifecycleError, match="no route to host"):
        leave(etcd, observed("cp1", "cp2", gone=["cp3"]))
