"""The rules that refuse jobs, run by Lua 5.1, the interpreter that Slurm's plugin embeds.

What jobs look like (the names and forms of their requests, NO_VAL for what isn't said) is as
slurmctld 24.11.5 hands it over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lupa.lua51 import LuaRuntime  # type: ignore[import-untyped]  # one class of it is used
from tests.roles.rendering import written_files

from gcluster.lifecycle.bundle.role_tasks import FACTS, filled_tasks, loaded, role_variables

ROLE = Path(__file__).parents[2] / "roles/slurm"
NO_VAL = 4294967294
NOTHING_SAID = {"time_limit": NO_VAL, "shared": 65534}

_SLURM = """
slurm = {SUCCESS = 0, ERROR = -1, said = {}}
function slurm.log_user(...) table.insert(slurm.said, string.format(...)) end
"""


def script(*, require_time: bool = True, require_gpus: bool = True) -> str:
    """Return job_submit.lua of a cluster with a GPU partition, the default one, and one without."""
    partition = {"nodes": "n1", "max_time_minutes": 0}
    result = {
        "slurm_role": "controller",
        "slurm_cluster": "demo",
        "slurm_controllers": [{"name": "head", "address": "10.0.0.1"}],
        "slurm_partitions": [
            {"name": "cpu", "default": False, **partition},
            {"name": "gpu", "default": True, **partition},
        ],
        "slurm_job_rules": {
            "require_time": require_time,
            "require_gpus": require_gpus,
            "gpu_partitions": ["gpu"],
        },
        "slurm_written": {"changed": True},
        "slurm_runs": {"rc": 0},
        "slurm_started": {"changed": True},
    }
    variables = role_variables(ROLE, result, FACTS["debian-13"])
    tasks = filled_tasks(loaded(ROLE / "tasks/configure.yml"), variables, ROLE)
    files = {path: text for task in tasks for path, text in written_files(task).items()}
    return files["/etc/slurm/job_submit.lua"]


def answer(job: dict[str, Any], **rules: bool) -> list[str]:
    """Return the message to a refused job's user; empty: the job is taken."""
    lua = LuaRuntime()
    lua.execute(_SLURM)
    lua.execute(script(**rules))
    table = lua.table_from(NOTHING_SAID | job)
    refused = lua.globals().slurm_job_submit(table, lua.table(), 2001) != 0
    result = list(lua.globals().slurm.said.values())
    assert refused == bool(result)
    return result


WITH_TIME = {"time_limit": 60}


def test_a_gpu_job_without_requirements_is_reported_with_both_settings_to_add() -> None:
    time, gpus = answer({})
    assert time == (
        "partition gpu has GPUs: say how long the job runs at most, such as --time=4:00:00 "
        "(the shorter, the sooner it starts)"
    )
    assert gpus == (
        "partition gpu has GPUs: say how many the job needs, such as --gpus-per-node=8, "
        "or take whole nodes with --exclusive"
    )


@pytest.mark.parametrize(
    "request_",
    [
        {"tres_per_job": "gres/gpu:2"},
        {"tres_per_node": "gres/gpu:h100:8"},
        {"tres_per_node": "gres:gpu:8"},
        {"tres_per_task": "cpu=4,gres/gpu=1"},
        {"tres_per_socket": "gres/gpu:4"},
        {"tres_per_node": "gres/shard:2"},
        {"tres_per_job": "gres/mps:50"},
        {"shared": 0},
    ],
)
def test_a_job_that_has_time_and_gpus_is_taken(request_: dict[str, Any]) -> None:
    assert answer(WITH_TIME | request_) == []


@pytest.mark.parametrize("request_", ["gres/gpu", "gres/gpu:h100", "gres/nic:1", "cpu=8"])
def test_gpus_without_a_number_are_not_reported(request_: str) -> None:
    (gpus,) = answer(WITH_TIME | {"tres_per_node": request_})
    assert "how many" in gpus


def test_a_job_of_a_partition_without_gpus_needs_no_settings() -> None:
    assert answer({"partition": "cpu"}) == []


def test_a_job_that_could_run_in_a_gpu_partition_too_must_set_it() -> None:
    assert len(answer({"partition": "cpu,gpu"})) == 2


def test_a_job_that_requests_gpus_elsewhere_must_set_its_time() -> None:
    (time,) = answer({"partition": "cpu", "tres_per_job": "gres/gpu:1"})
    assert time.startswith("the job asks for GPUs: say how long")


def test_each_rule_holds_only_where_it_is_requested() -> None:
    (time,) = answer({}, require_gpus=False)
    assert "--time" in time
    (gpus,) = answer({}, require_time=False)
    assert "--gpus-per-node" in gpus
    assert answer({}, require_time=False, require_gpus=False) == []


def test_a_change_of_a_job_is_taken() -> None:
    lua = LuaRuntime()
    lua.execute(_SLURM)
    lua.execute(script())
    empty = lua.table()
    assert lua.globals().slurm_job_modify(empty, empty, empty, 2001) == 0
