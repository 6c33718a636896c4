"""One observation of a controller, as Slurm 24.11 prints it, and what can't be injected into it."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.operations.burst.slurm.reading import CutShortError, read

MARK = "c0ffee"
NODE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=4 CPUAlloc=0 State={state} ThreadsPerCore=2 "
    "BootTime=1767225000 LastBusyTime=1767225500 Partitions=spill {end}"
)


def look(*, nodes: str = "", jobs: str = "", more: str = "", requests: str = "") -> str:
    return (
        f"{MARK} now 1767225600\n{requests}{MARK} nodes\n{nodes}{MARK} jobs\n{jobs}"
        f"{MARK} more\n{more}{MARK} end\n"
    )


def job(
    *, state: str = "PENDING", why: str = "Resources", tasks: str = "N/A", nodes: int = 2,
    on: str = "", limit: str = "1-02:00:00", features: str = "(null)", comment: str = "(null)",
) -> str:  # fmt: skip
    head = f"{MARK}|7|{tasks}|train|{state}|{why}|{nodes}|{on}|{limit}|1767230000|1767220000"
    return f"{head}|nlp|normal|ada|{features}|{comment}\n"


def more(*, node: str = "", whole: str = "") -> str:
    return f"{'7':<20}{'1767221000':<24}{node or 'N/A':<80}{whole or 'N/A':<80}\n"


@pytest.mark.parametrize(
    ("state", "seen"),
    [
        ("IDLE+CLOUD+POWERED_DOWN", "off"),
        ("IDLE+CLOUD+POWERING_DOWN", "off"),
        ("ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP", "coming"),
        ("MIXED+CLOUD", "here"),
        ("IDLE+CLOUD+POWER_DOWN", "here"),
        ("IDLE+CLOUD+POWER_DOWN+NOT_RESPONDING", "off"),
        ("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", "coming"),
        ("DOWN+CLOUD+NOT_RESPONDING+POWERING_UP", "down"),
        ("DOWN+CLOUD+POWERED_DOWN", "down"),
        ("DOWN*+CLOUD+POWERING_UP", "down"),
    ],
)
def test_each_state_of_a_node_is_one_of_four(state: str, seen: str) -> None:
    line = NODE.format(name="spill001", state=state, end="") + "\n"

    assert read(look(nodes=line), MARK, {}).nodes["spill001"].state == seen


def test_a_node_that_slurm_does_not_list_is_left_out() -> None:
    line = NODE.format(name="spill001", state="UNKNOWN+CLOUD", end="") + "\n"

    assert read(look(nodes=line), MARK, {}).nodes == {}


def test_an_idle_node_has_since_when_and_a_drained_one_is_not_fit() -> None:
    end = "Reason=bad fan = loud [root@1767225000]"
    nodes = "".join(
        NODE.format(name=name, state=state, end=end) + "\n"
        for name, state in (("gpu001", "IDLE"), ("gpu002", "IDLE+DRAIN"), ("gpu003", "ALLOCATED"))
    )

    seen = read(look(nodes=nodes), MARK, {}).nodes

    assert (seen["gpu001"].idle_since, seen["gpu001"].fit) == (1767225500.0, True)
    assert (seen["gpu002"].fit, seen["gpu002"].reason) == (False, "bad fan = loud")
    assert seen["gpu003"].idle_since is None


def test_a_waiting_job_has_all_that_the_policy_queries() -> None:
    text = look(jobs=job(comment="data=scratch,home spill=no"), more=more(node="gres/gpu:h100:8"))

    (found,) = read(text, MARK, {"h100": "H100"}).jobs

    assert found.job.eligible_since == 1767221000.0
    assert (found.job.nodes, found.job.gpus_per_node, found.job.gpu_model) == (2, 8, "H100")
    assert found.job.time_limit == 26 * 3600
    assert (found.job.account, found.job.qos, found.job.user) == ("nlp", "normal", "ada")
    assert found.job.data == ("scratch", "home")
    assert not found.job.may_leave
    assert (found.job.held, found.nodes, found.partition) == ("", (), "train")


def test_gpus_of_the_whole_job_are_shared_by_its_nodes() -> None:
    (found,) = read(look(jobs=job(), more=more(whole="gres/gpu:12")), MARK, {}).jobs

    assert (found.job.gpus_per_node, found.job.gpu_model) == (6, None)


@pytest.mark.parametrize(("tasks", "nodes"), [("0-9", 20), ("0-9%3", 6), ("1,4-8:2", 8), ("5", 2)])
def test_an_array_requests_the_nodes_of_all_tasks_that_may_run_at_once(
    tasks: str, nodes: int
) -> None:
    (found,) = read(look(jobs=job(tasks=tasks), more=more()), MARK, {}).jobs

    assert found.job.nodes == nodes


@pytest.mark.parametrize("why", ["Dependency", "JobHeldUser", "BeginTime", "AssocGrpGRES"])
def test_a_job_that_waits_for_something_else_is_held(why: str) -> None:
    (found,) = read(look(jobs=job(why=why), more=more()), MARK, {}).jobs

    assert found.job.held == f"it waits for {why}"


def test_a_running_job_has_nodes_and_an_end() -> None:
    jobs = job(state="RUNNING", why="None", on="spill[001-002]")

    (found,) = read(look(jobs=jobs, more=more()), MARK, {}).jobs

    assert (found.nodes, found.ends) == (("spill001", "spill002"), 1767230000.0)


def test_a_feature_that_is_one_of_two_does_not_move_what_comes_after_it() -> None:
    (found,) = read(look(jobs=job(features="h100|h200", comment="spill=no")), MARK, {}).jobs

    assert found.job.features == {"h100", "h200"}
    assert not found.job.may_leave


def test_what_is_between_bars_in_a_comment_is_no_feature() -> None:
    (found,) = read(look(jobs=job(comment="lr=1|spill=no spill=no|x"), more=more()), MARK, {}).jobs
    (other,) = read(look(jobs=job(comment="spill=no a|b"), more=more()), MARK, {}).jobs

    assert (found.job.features, other.job.features) == (frozenset(), frozenset())
    assert not other.job.may_leave


def test_a_comment_of_several_lines_is_no_second_job() -> None:
    forged = "x\n" + job().replace(MARK, "guess").strip()

    found = read(look(jobs=job(comment=forged), more=more()), MARK, {}).jobs

    assert [each.job.id for each in found] == ["7"]


def test_requests_come_with_their_nodes() -> None:
    requests = f"{MARK} request 1-2-resume.request\nresume\n1767225590\nspill001\nspill002\n"

    (found,) = read(look(requests=requests), MARK, {}).requests

    assert (found.id, found.kind, found.at) == ("1-2-resume.request", "resume", 1767225590.0)
    assert found.nodes == ("spill001", "spill002")


def test_an_answer_that_was_cut_short_is_refused() -> None:
    with pytest.raises(CutShortError):
        read(look().replace(f"{MARK} end\n", ""), MARK, {})
