"""The playbook runs exactly what is pending, and each step leaves its stamp last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import given

from gcluster.inventory.compile import CompiledCluster
from gcluster.lifecycle.nodes.converge.pending import pending_steps
from gcluster.lifecycle.nodes.converge.playbook import STAMP_PREFIX, playbook_yaml, plays

from .compiled import SMALL, any_cluster
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


@given(any_cluster())
def test_every_pending_step_is_stamped_once_on_each_of_its_hosts(compiled: CompiledCluster) -> None:
    pending = pending_steps(compiled, {}, {})
    wanted = sorted((host, i.step.key) for i in pending.steps for host in i.hosts)
    assert sorted(stamped_by(plays(pending, {}))) == wanted


@given(any_cluster())
def test_each_host_runs_its_steps_in_order(compiled: CompiledCluster) -> None:
    pending = pending_steps(compiled, {}, {})
    ran: dict[str, list[str]] = {}
    for host, step in stamped_by(plays(pending, {})):
        ran.setdefault(host, []).append(step)
    assert {host: tuple(steps) for host, steps in ran.items()} == pending.by_host()


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
