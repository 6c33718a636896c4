"""Which steps run where: those whose stamp differs, in order, and no others."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.inventory.compile.golden import compiled, spec_of

from gcluster.inventory.compile import CompiledCluster
from gcluster.inventory.compile.steps import PHASES, Stage
from gcluster.lifecycle.nodes.converge.pending import (
    CHANGED,
    NEVER_RAN,
    NO_LONGER_WANTED,
    Pending,
    pending_steps,
)

from .compiled import SMALL, any_cluster, cluster, group, step


def stamped(pending: Pending) -> dict[str, dict[str, str]]:
    """Return the stamps after every pending step has run."""
    stamps: dict[str, dict[str, str]] = {}
    for item in pending.steps:
        for host in item.hosts:
            stamps.setdefault(host, {})[item.step.key] = item.digest
    return stamps


def pairs(pending: Pending) -> set[tuple[str, str]]:
    return {(host, item.step.key) for item in pending.steps for host in item.hosts}


def changed(compiled: CompiledCluster, pool: int, number: int, **variables: Any) -> CompiledCluster:
    """Return the cluster with other variables in one step of one pool."""
    groups = list(compiled.groups)
    steps = list(groups[pool].steps)
    steps[number] = msgspec.structs.replace(steps[number], variables=variables)
    groups[pool] = msgspec.structs.replace(groups[pool], steps=tuple(steps))
    return CompiledCluster(cluster=compiled.cluster, groups=tuple(groups))


DONE = stamped(pending_steps(SMALL, {}, {"munge": "1"}))


def test_a_new_cluster_runs_everything_once() -> None:
    pending = pending_steps(SMALL, {}, {"munge": "1"})
    assert pending.total == 14
    assert {why for item in pending.steps for why in item.hosts.values()} == {NEVER_RAN}


@given(any_cluster())
def test_what_has_run_is_not_pending(compiled: CompiledCluster) -> None:
    done = stamped(pending_steps(compiled, {}, {}))
    assert pending_steps(compiled, done, {}).total == 0


@given(any_cluster(), st.data())
def test_exactly_the_missing_stamps_are_pending(
    compiled: CompiledCluster, data: st.DataObject
) -> None:
    everything = pending_steps(compiled, {}, {})
    lost = (
        data.draw(st.sets(st.sampled_from(sorted(pairs(everything)))))
        if pairs(everything)
        else set()
    )
    left = {
        host: {key: d for key, d in steps.items() if (host, key) not in lost}
        for host, steps in stamped(everything).items()
    }
    assert pairs(pending_steps(compiled, left, {})) == lost


@given(any_cluster())
def test_steps_come_by_stage_and_phases_of_a_role_in_order(compiled: CompiledCluster) -> None:
    steps = [item.step for item in pending_steps(compiled, {}, {}).steps]
    stages = [list(Stage).index(s.stage) for s in steps]
    assert stages == sorted(stages)
    for role in {s.role for s in steps}:
        phases = [PHASES.index(s.phase) for s in steps if s.role == role]
        assert phases == sorted(phases)


def test_the_controller_is_configured_before_the_nodes() -> None:
    order = [(i.step.key, i.pool) for i in pending_steps(SMALL, {}, {}).steps]
    assert order.index(("slurm.configure", "head")) < order.index(("slurm.configure", "gpu"))


def test_slurm_s_daemons_change_in_the_order_that_slurm_requests() -> None:
    """slurmdbd, slurmctld, slurmd (slurm.schedmd.com/upgrades.html), also with slurmdbd apart."""
    cluster = compiled(spec_of("two-controllers"))
    order = [(i.step.key, i.pool) for i in pending_steps(cluster, {}, {}).steps]
    places = [
        order.index(step)
        for step in (
            ("slurmdbd.install", "db"),
            ("slurmdbd.configure", "db"),
            ("slurmdbd.verify", "db"),
            ("slurm.install", "head"),
            ("slurm.install", "gpu"),
            ("slurm.configure", "head"),
            ("slurm.configure", "gpu"),
        )
    ]
    assert places == sorted(places)


def test_other_inputs_run_the_step_and_its_roles_verify_again() -> None:
    after = changed(SMALL, 0, 2, slurm_role="controller", slurm_nodes="gpu[1-3]")
    pending = pending_steps(after, DONE, {"munge": "1"})
    assert pairs(pending) == {("head1", "slurm.configure"), ("head1", "slurm.verify")}
    assert {why for item in pending.steps for why in item.hosts.values()} == {CHANGED}


def test_a_new_secret_runs_only_the_step_that_uses_it() -> None:
    assert {key for _, key in pairs(pending_steps(SMALL, DONE, {"munge": "2"}))} == {
        "munge.configure"
    }


def test_one_node_more_costs_that_node() -> None:
    groups = list(SMALL.groups)
    groups[1] = msgspec.structs.replace(groups[1], hosts=("gpu1", "gpu2", "gpu3"))
    after = CompiledCluster(cluster="demo", groups=tuple(groups))
    assert {host for host, _ in pairs(pending_steps(after, DONE, {"munge": "1"}))} == {"gpu3"}


def test_hosts_can_be_left_out_and_done_steps_taken_off() -> None:
    pending = pending_steps(SMALL, {}, {}).for_hosts(frozenset({"gpu1"}))
    assert set(pending.by_host()) == {"gpu1"}
    rest = pending.without({"gpu1": ["base.install", "munge.configure"]})
    assert rest.by_host() == {"gpu1": ("slurm.configure", "slurm.join", "slurm.verify")}


def test_a_step_has_its_roles_name_in_its_stamp() -> None:
    assert step("base", "install").key == "base.install"


def test_routes_and_tunnels_that_a_spec_drops_end_before_all_else() -> None:
    carried = {"base.install": "old", "wireguard.install": "i", "wireguard.configure": "c"}
    tunnel = {"gpu1": carried | {"site_routes.configure": "r"}, "gpu2": {"wireguard.install": "i"}}
    first, second, *_ = pending_steps(SMALL, tunnel, {}).steps
    assert [first.step.key, second.step.key] == ["site_routes.remove", "wireguard.remove"]
    assert first.hosts == second.hosts == {"gpu1": NO_LONGER_WANTED}


def test_what_is_requested_stays() -> None:
    configure = msgspec.structs.replace(step("base", "configure"), role="wireguard")
    requested = cluster(group("gpu", 1, configure))
    pending = pending_steps(requested, {"gpu1": {"wireguard.configure": "old"}}, {})
    assert pairs(pending) == {("gpu1", "wireguard.configure")}
