"""Hosts that are gone with the only copy of data are not recreated empty unless that is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.operations.queue_state import PREFIX, WISH, SavedQueue
from gcluster.lifecycle.planning.lost_data import lost_data_guards
from gcluster.lifecycle.state import HostsConverged, RunStarted
from gcluster.lifecycle.status.observe import Observation

ROOM = """\
apiVersion: gcluster/v1
name: trial
sites: {{room: {{provider: bare-metal, ssh: {{user: ops}}}}}}
pools:
  head: {{site: room, role: controller, hosts: [{hosts}]}}
  db: {{site: room, role: login, hosts: [{{name: db, address: 192.0.2.9}}]}}
  gpu: {{site: room, machine: hgx-h100-8, hosts: [{{name: gpu001, address: 192.0.2.3}}]}}
storage: {{state: {{type: nfs, mount: /state, server: 192.0.2.8, pools: [head]}}}}
scheduler: {{{scheduler}}}
"""
SLURM = "type: slurm, accounts: {nlp: {share: 60}}"
ONE, THREE = 1, 3
CARRIES = {"base.install": "0" * 64}


def _host(name: str) -> Host:
    pool = name.rstrip("0123456789")
    role = {"head": "controller", "db": "login"}.get(pool, "compute")
    return msgspec.convert(
        {"name": name, "pool": pool, "role": role, "site": "room", "machine": None}
        | {"ssh": {"user": "root"}},
        Host,
    )


class Room:
    """A cluster whose spec was applied and whose hosts served, of which some are gone."""

    def __init__(self, sample: SampleCluster, scheduler: str = SLURM, heads: int = ONE) -> None:
        """Apply a spec."""
        names = [f"head{number}" for number in range(1, heads + 1)]
        text = ", ".join(f"{{name: {n}, address: 192.0.2.1{n[-1]}}}" for n in names)
        sample.path.write_text(ROOM.format(hosts=text, scheduler=scheduler), encoding="utf-8")
        cluster = sample.open()
        cluster.identify()
        cluster.keep_spec()
        cluster.events.append(HostsConverged(hosts=f"head[1-{heads}],db,gpu001", failed={}))
        self.cluster = sample.open()
        self.hosts = [_host(name) for name in [*names, "db", "gpu001"]]

    def things(self, *gone: str, empty: tuple[str, ...] = ()) -> dict[str, str]:
        """Return what has to be named, with what else can be done."""
        return {g.thing: g.hint for g in lost_data_guards(self.cluster, self.seen(gone, empty))}

    def seen(self, gone: tuple[str, ...], empty: tuple[str, ...]) -> Observation:
        """Return what an observation has when some hosts are gone, and some carry nothing."""
        there = tuple(host for host in self.hosts if host.name not in gone)
        return Observation(
            sites=(),
            existing=ClusterInventory(cluster="trial", hosts=there),
            desired=ClusterInventory(cluster="trial", hosts=tuple(self.hosts)),
            stamps={h.name: {} if h.name in empty else CARRIES for h in there},
            unreachable={},
            taken_at=0.0,
        )


def test_the_only_controller_has_the_queue_and_the_accounts(sample: SampleCluster) -> None:
    room = Room(sample)
    (guard,) = lost_data_guards(room.cluster, room.seen(("head1",), ()))
    assert guard.thing == "controller:head1"
    assert "its queue and the accounting database" in guard.reason
    assert guard.hint == "nothing was saved (gcluster backup trial)"
    assert room.things("gpu001") == {}


def test_a_host_that_was_set_up_again_has_lost_it_as_well(sample: SampleCluster) -> None:
    assert list(Room(sample).things(empty=("head1",))) == ["controller:head1"]


def test_a_host_that_does_not_answer_has_lost_nothing_as_far_as_is_known(
    sample: SampleCluster,
) -> None:
    room = Room(sample)
    silent = msgspec.structs.replace(room.seen((), ()), stamps={}, unreachable={"head1": "off"})
    assert lost_data_guards(room.cluster, silent) == ()


def test_accounts_may_be_on_a_host_of_their_own(sample: SampleCluster) -> None:
    room = Room(sample, f"{SLURM}, accounting: {{pool: db}}")
    assert list(room.things("db")) == ["accounting:db"]
    assert list(room.things("head1", "db")) == ["accounting:db", "controller:head1"]


def test_a_database_of_others_and_a_shared_state_lose_nothing(sample: SampleCluster) -> None:
    theirs = "accounting: {database: db.example.org, password: env:PASSWORD}"
    assert Room(sample, f"{SLURM}, state_save: state, {theirs}", heads=3).things("head1") == {}


@pytest.mark.parametrize(("gone", "held"), [(["head1"], 0), (["head1", "head2"], 2)])
def test_control_planes_lose_their_objects_with_most_of_them(
    sample: SampleCluster, gone: list[str], held: int
) -> None:
    scheduler = "type: kubernetes, virtual_address: {address: 192.0.2.7}"
    assert len(Room(sample, scheduler, heads=THREE).things(*gone)) == held


def test_the_newest_backup_is_offered(sample: SampleCluster) -> None:
    room = Room(sample)
    for day, accounts in (("01", 0), ("02", 9)):
        saved: dict[str, Any] = {
            "id": day,
            "taken_at": f"2026-11-{day}T10:00:00Z",
            "slurm": "24.11",
        }
        saved |= {"running": 8, "pending": 200, "size": 1, "sha256": "", "accounts": accounts}
        found = msgspec.convert(saved, SavedQueue)
        room.cluster.store.put(f"{PREFIX}/{day}.json", msgspec.json.encode(found))
    (hint,) = room.things("head1").values()
    assert hint.startswith("gcluster restore trial, then up")
    assert hint.endswith("of 2026-11-02T10:00:00Z: 8 running and 200 pending jobs, with accounts")


def test_a_restore_that_was_requested_and_a_down_need_no_flag(sample: SampleCluster) -> None:
    room = Room(sample)
    room.cluster.store.put(WISH, b'"01"')
    assert room.things("head1") == {}
    room.cluster.store.delete(WISH)
    assert room.things("head1") != {}
    room.cluster.events.append(RunStarted(command="down", spec_hash="0"))
    assert room.things("head1") == {}
