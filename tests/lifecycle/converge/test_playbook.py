"""The playbook runs exactly what is pending, and each step leaves its stamp last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.compile import CompiledCluster
from gcluster.lifecycle.nodes.converge.pending import pending_steps
from gcluster.lifecycle.nodes.converge.playbook import (
    STAMP_PREFIX,
    host_variables,
    playbook_yaml,
    plays,
)

from .compiled import SMALL, any_cluster, cluster, group, step
from .test_pending import DONE


def stamped_by(playbook: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (host, step) of every stamp task, in order."""
    return [
        (host, task["name"].removeprefix(STAMP_PREFIX))
        for play in playbook
        for task in play["tasks"]
        if task["name"].startswith(STAMP_PREFIX)
        for host in play["hosts"].split(",")
    ]


@given(any_cluster(), st.booleans())
def test_every_pending_step_is_stamped_once_on_each_of_its_hosts(
    compiled: CompiledCluster, joined: bool
) -> None:
    pending = pending_steps(compiled, {}, {})
    wanted = sorted((host, i.step.key) for i in pending.steps for host in i.hosts)
    assert sorted(stamped_by(plays(pending, {}, joined=joined))) == wanted


@given(any_cluster(), st.booleans())
def test_each_host_runs_its_steps_in_order(compiled: CompiledCluster, joined: bool) -> None:
    pending = pending_steps(compiled, {}, {})
    ran: dict[str, list[str]] = {}
    for host, key in stamped_by(plays(pending, {}, joined=joined)):
        ran.setdefault(host, []).append(key)
    assert {host: tuple(steps) for host, steps in ran.items()} == pending.by_host()


@given(any_cluster())
def test_a_joined_play_leaves_each_host_its_own_variables_and_stamps(
    compiled: CompiledCluster,
) -> None:
    """By Ansible's precedence: a play's variables win over a host's."""
    pending = pending_steps(compiled, {}, {})
    wanted: dict[tuple[str, str], tuple[object, str]] = {}
    for item in pending.steps:
        for host in item.hosts:
            wanted[host, item.step.key] = (item.step.variables, item.digest)
    own = host_variables(pending, {})
    for play in plays(pending, {}, joined=True):
        for host in play["hosts"].split(","):
            seen = own.get(host, {}) | play["vars"]
            for task in play["tasks"]:
                if not task["name"].startswith(STAMP_PREFIX):
                    continue
                variables, digest = wanted[host, task["name"].removeprefix(STAMP_PREFIX)]
                assert seen.items() >= dict(variables).items()  # type: ignore[call-overload]
                command = task["ansible.builtin.raw"]
                name = command.removeprefix("{{ ").removesuffix(" }}")
                assert digest in seen.get(name, command)


def test_pools_that_differ_run_an_independent_step_at_the_same_time() -> None:
    differing = cluster(
        group("head", 1, step("munge", "configure", munge_as="head"), step("munge", "join")),
        group("gpu", 2, step("munge", "configure", munge_as="node"), step("munge", "join")),
    )
    pending = pending_steps(differing, {}, {})
    first = plays(pending, {}, joined=True)[0]
    assert (first["hosts"], first["vars"]) == ("head1,gpu1,gpu2", {})
    assert host_variables(pending, {})["gpu2"]["munge_as"] == "node"
    assert [play["hosts"] for play in plays(pending, {})][:2] == ["head1", "gpu1,gpu2"]


def test_two_values_of_a_host_s_variable_are_refused() -> None:
    pools = [
        group(name, 1, step("munge", "configure", x=name), step("munge", "join", x=f"{name}2"))
        for name in ("head", "gpu")
    ]
    with pytest.raises(ValueError, match="has other values than a step before it"):
        host_variables(pending_steps(cluster(*pools), {}, {}), {})


def test_a_stamp_comes_after_its_role_and_the_roles_handlers() -> None:
    for play in plays(pending_steps(SMALL, {}, {}), {}):
        kinds = [next(k for k in task if k.startswith("ansible.")) for task in play["tasks"]]
        for start in range(0, len(kinds), 3):
            assert kinds[start : start + 3] == [
                "ansible.builtin.import_role",
                "ansible.builtin.meta",
                "ansible.builtin.raw",
            ]


def test_the_same_step_of_several_pools_is_one_play() -> None:
    first = plays(pending_steps(SMALL, {}, {}), {})[0]
    assert first["hosts"] == "head1,gpu1,gpu2"


def test_nothing_pending_is_no_play() -> None:
    assert plays(pending_steps(SMALL, DONE, {"munge": "1"}), {}) == []


def test_a_secret_is_a_path_and_without_one_a_placeholder() -> None:
    pending = pending_steps(SMALL, {}, {})
    assert "/dev/shm/key" in playbook_yaml(pending, {"munge": Path("/dev/shm/key")})  # noqa: S108
    assert "<secret munge>" in playbook_yaml(pending, {})


@given(any_cluster())
def test_the_yaml_has_the_plays_content_and_is_the_same_every_time(
    compiled: CompiledCluster,
) -> None:
    pending = pending_steps(compiled, {}, {})
    text = playbook_yaml(pending, {})
    assert yaml.safe_load(text) == plays(pending, {})
    assert text == playbook_yaml(pending_steps(compiled, {}, {}), {})
