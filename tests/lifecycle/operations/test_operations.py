"""Nodes leave service for a reason, come back, and are restarted a few at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, LocalShell
from tests.lifecycle.rolling.scheduler import SchedulerDouble

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.ssh import Answer, SshResult, SshSession, Unreachable
from gcluster.lifecycle.operations.reboot import (
    FIT,
    RESTART,
    STARTED,
    RebootResult,
    paced,
    reboot_nodes,
)
from gcluster.lifecycle.operations.rolling.roll import Clock
from gcluster.lifecycle.operations.selection import chosen
from gcluster.lifecycle.operations.service import (
    SILENT_S,
    ServiceResult,
    drain,
    resume,
    wait_for_answers,
)
from gcluster.lifecycle.scheduler.slurm import Slurm
from gcluster.schemas.load import load_text

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {lab: {provider: local}}
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 4, update: {max_unavailable: 2, drain_timeout: 60s}}
scheduler: {type: slurm}
"""
NODES = ("gpu001", "gpu002", "gpu003", "gpu004")
STARTS_S = 5.0
"""When the scheduler of a test answers."""
HOSTS = ClusterInventory(
    cluster="demo",
    hosts=(
        HEAD,
        *(
            msgspec.structs.replace(HEAD, name=name, pool="gpu", role="compute", machine=None)
            for name in NODES
        ),
    ),
)


def _names(*words: str) -> list[str]:
    return [host.name for host in chosen(HOSTS, words).hosts]


def test_nodes_are_named_by_ranges_and_by_pools_and_each_counts_once() -> None:
    assert _names("gpu[002-003]", "gpu003") == ["gpu002", "gpu003"]
    assert _names("gpu004", "gpu") == list(NODES)


@pytest.mark.parametrize(
    ("word", "code", "ends", "message"),
    [
        ("gpu005", "GC908", Exit.USAGE, 'no node or pool "gpu005"'),
        ("gpu[1-", "GC908", Exit.USAGE, "unclosed"),
        ("head", "GC999", Exit.REFUSED, "head is a controller: it runs no jobs"),
    ],
)
def test_what_is_no_node_for_jobs_is_refused(
    word: str, code: str, ends: Exit, message: str
) -> None:
    with pytest.raises(LifecycleError, match=message) as caught:
        chosen(HOSTS, [word])
    assert (caught.value.diagnostics[0].code, caught.value.exit_code) == (code, ends)


def test_simulated_nodes_have_no_scheduler_that_drains_them() -> None:
    hosts = tuple(msgspec.structs.replace(h, connection="simulated") for h in HOSTS.hosts)
    with pytest.raises(LifecycleError, match="simulated"):
        chosen(msgspec.structs.replace(HOSTS, hosts=hosts), ["gpu"])


class Controller(LocalShell):
    """A controller whose scontrol changes what its sinfo prints."""

    def __init__(self, folder: Path) -> None:
        """Begin with gpu001 in service, gpu002 drained, gpu003 down, gpu004 in gcluster's hands."""
        super().__init__(folder / "bin")
        state = folder / "state"
        state.mkdir()
        for node, answer in {
            "gpu001": "mixed|none",
            "gpu002": "drained|RMA 4711",
            "gpu003": "down*|Not responding",
            "gpu004": "drained|gcluster up: run 1",
        }.items():
            (state / node).write_text(answer)
        self.has("sinfo", f'cd {state}; for n in *; do echo "$n|$(cat $n)"; done')
        self.has("squeue", 'echo "12|gpu001"')
        self.has(
            "sudo",
            f"""shift; for word; do case $word in
NodeName=*) node=${{word#NodeName=}} ;;
State=DRAIN) new=draining ;;
State=RESUME) new="idle|none" ;;
Reason=*) new="$new|${{word#Reason=}}" ;;
esac; done
[ "$node" = gpu003 ] || printf '%s' "$new" > {state}/$node""",
        )


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    """Give the controller."""
    return Controller(tmp_path)


def _one(result: ServiceResult) -> tuple[bool, bool, str]:
    (node,) = result.nodes
    return node.in_service, node.changed, node.reason


def test_a_drained_node_has_its_reason_and_the_jobs_that_run_on(controller: Controller) -> None:
    result = drain(HOSTS, Slurm(controller, HEAD), ["gpu001"], "NVLink of GPU 3")
    assert _one(result) == (False, True, "NVLink of GPU 3")
    assert (result.nodes[0].jobs, result.exit_code) == (("12",), Exit.OK)


def test_a_node_that_is_out_already_keeps_its_reason(controller: Controller) -> None:
    assert _one(drain(HOSTS, Slurm(controller, HEAD), ["gpu002"], "mine")) == (
        False,
        False,
        "RMA 4711",
    )


def test_a_drain_without_a_reason_is_a_mistake_of_usage(controller: Controller) -> None:
    with pytest.raises(LifecycleError) as caught:
        drain(HOSTS, Slurm(controller, HEAD), ["gpu001"], " ")
    assert caught.value.exit_code is Exit.USAGE


def test_a_resumed_node_is_in_service(controller: Controller) -> None:
    assert _one(resume(HOSTS, Slurm(controller, HEAD), ["gpu002"])) == (True, True, "")


def test_a_node_that_is_down_is_not_in_service_by_being_resumed(controller: Controller) -> None:
    waited = [0.0]

    def sleep(seconds: float) -> None:
        waited[0] += seconds

    clock = Clock(lambda: waited[0], sleep)
    result = resume(HOSTS, Slurm(controller, HEAD), ["gpu003"], clock)
    assert _one(result) == (False, False, "Not responding")
    assert result.exit_code is Exit.FAILED


def test_a_resumed_node_serves_once_the_scheduler_has_registered_it() -> None:
    scheduler = SchedulerDouble({"gpu001": 0.0}, drained={"gpu001": "link 3"})
    scheduler.answers_from = {"gpu001": 30.0}
    assert _one(resume(HOSTS, scheduler, ["gpu001"], scheduler.clock)) == (True, True, "")
    assert scheduler.time == 30.0


def test_a_resumed_node_that_stays_silent_is_reported_and_not_waited_for_for_ever() -> None:
    scheduler = SchedulerDouble({"gpu001": 0.0}, drained={"gpu001": "link 3"})
    scheduler.answers_from = {"gpu001": 1e9}
    result = resume(HOSTS, scheduler, ["gpu001"], scheduler.clock)
    assert _one(result) == (False, True, "the scheduler gets no answer from it")
    assert result.exit_code is Exit.FAILED


def test_a_node_that_gcluster_is_changing_is_not_given_back_half_way(
    controller: Controller,
) -> None:
    with pytest.raises(LifecycleError, match="gpu004 is being changed by gcluster") as caught:
        resume(HOSTS, Slurm(controller, HEAD), ["gpu"])
    assert caught.value.exit_code is Exit.REFUSED


def test_a_scheduler_that_was_just_started_is_waited_for_and_nodes_that_answer_it_late() -> None:
    """Slurm says of these that they don't respond; of a node that a person took out it may not."""
    service = SchedulerDouble(
        dict.fromkeys(NODES, 0), drained={NODES[0]: "Not responding", NODES[1]: "a fan"}
    )
    service.answers_from = {NODES[0]: 20.0, NODES[1]: 10_000.0}
    answer, service.silent_from = service.silent_from, 0.0

    def sleep(seconds: float) -> None:
        service.time += seconds
        if service.time >= STARTS_S:
            service.silent_from = answer

    wait_for_answers(service, NODES, Clock(lambda: service.time, sleep))
    assert service.time == service.answers_from[NODES[0]]


def test_a_scheduler_that_never_answers_is_given_up() -> None:
    service = SchedulerDouble(dict.fromkeys(NODES, 0))
    service.silent_from = 0.0
    wait_for_answers(service, NODES, service.clock)
    assert service.time == SILENT_S


def test_a_scheduler_that_is_silent_is_no_traceback(controller: Controller) -> None:
    controller.has("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(LifecycleError, match="Unable to contact slurm controller"):
        drain(HOSTS, Slurm(controller, HEAD), ["gpu001"], "x")


class Machines(SshSession):
    """The double of machines that restart: away for a while, then back, some unfit or never."""

    def __init__(
        self,
        folder: Path,
        scheduler: SchedulerDouble,
        *,
        unfit: Collection[str] = (),
        gone: Collection[str] = (),
        stop: Collection[str] = (),
    ) -> None:
        """Take the nodes that come back unfit, those that don't, and those that stop instead."""
        super().__init__(folder)
        self.scheduler, self.unfit, self.gone = scheduler, unfit, gone
        self.stop, self.off = stop, set[str]()
        self.restarted: dict[str, float] = {}
        self.while_busy: list[str] = []

    def run_many(
        self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
    ) -> dict[str, Answer]:
        """Answer for each machine."""
        del timeout_s
        return {host.name: self._one(host.name, command) for host in hosts}

    def power_on(self, names: Collection[str]) -> None:
        """Start machines that are off."""
        for name in self.off & set(names):
            self.restarted[name] = self.scheduler.time
        self.off -= set(names)

    def _one(self, name: str, command: str) -> Answer:
        now = self.scheduler.time
        if command == RESTART:
            self.while_busy += [name] if self.scheduler.busy(name) else []
            self.restarted[name] = now
            self.off |= {name} & set(self.stop)
            return Unreachable(reason="connection closed")
        if name in self.off:
            return Unreachable(reason="no route to host")
        since = now - self.restarted.get(name, -1000.0)
        if name in self.restarted and (since < 30 or name in self.gone):  # a boot takes 30 s
            return Unreachable(reason="no route to host")
        if command == STARTED:
            return _result(f"{self.restarted.get(name, 0)}\n")
        assert command == FIT
        return _result("7 of 8 GPUs", 1) if name in self.unfit else _result("fit")


def _result(text: str, code: int = 0) -> SshResult:
    return SshResult(returncode=code, stdout=text, stderr="")


def _reboot(scheduler: SchedulerDouble, machines: Machines, **pace: object) -> RebootResult:
    spec = load_text(SPEC, file="cluster.yaml").spec
    assert spec is not None
    requested = {"at_once": None, "requeue": False} | pace
    return reboot_nodes(
        HOSTS,
        chosen(HOSTS, ["gpu"]),
        paced(spec, **requested),  # type: ignore[arg-type]  # the two that it takes
        scheduler,
        machines,
        silent,
        why="reboot",
        power_on=machines.power_on,
        clock=scheduler.clock,
    )


def test_nodes_restart_in_waves_of_the_spec_and_never_under_a_job(tmp_path: Path) -> None:
    scheduler = SchedulerDouble({"gpu001": 0, "gpu002": 40, "gpu003": 0, "gpu004": 0})
    machines = Machines(tmp_path, scheduler)
    result = _reboot(scheduler, machines)
    assert sorted(result.rebooted) == list(NODES)
    assert result.exit_code is Exit.OK
    assert (scheduler.most_out, machines.while_busy, scheduler.reasons) == (2, [], {})


def test_a_node_that_stops_instead_of_restarting_is_started_by_its_site(tmp_path: Path) -> None:
    """As containers do: nothing starts them again, as firmware starts a machine."""
    scheduler = SchedulerDouble(dict.fromkeys(NODES, 0.0))
    result = _reboot(scheduler, Machines(tmp_path, scheduler, stop=["gpu002"]))
    assert (sorted(result.rebooted), result.failed) == (list(NODES), {})


def test_one_at_a_time_can_be_requested(tmp_path: Path) -> None:
    scheduler = SchedulerDouble(dict.fromkeys(NODES, 0.0))
    _reboot(scheduler, Machines(tmp_path, scheduler), at_once=1)
    assert scheduler.most_out == 1


def test_a_node_whose_job_outlasts_the_patience_is_left_in_service(tmp_path: Path) -> None:
    scheduler = SchedulerDouble({"gpu001": 0, "gpu002": 9999, "gpu003": 0, "gpu004": 0})
    result = _reboot(scheduler, Machines(tmp_path, scheduler))
    assert result.held == {"gpu002": "job job-gpu002 still runs there after 60 s"}
    assert (result.exit_code, scheduler.reasons) == (Exit.PENDING, {})


def test_jobs_are_put_back_in_line_when_that_was_requested(tmp_path: Path) -> None:
    scheduler = SchedulerDouble({"gpu001": 0, "gpu002": 9999, "gpu003": 0, "gpu004": 0})
    result = _reboot(scheduler, Machines(tmp_path, scheduler), requeue=True)
    assert result.exit_code is Exit.OK
    assert scheduler.requeued == ["job-gpu002"]


def test_a_node_that_comes_back_unfit_stays_drained_and_stops_the_rest(tmp_path: Path) -> None:
    scheduler = SchedulerDouble(dict.fromkeys(NODES, 0.0))
    result = _reboot(scheduler, Machines(tmp_path, scheduler, unfit=["gpu001"]))
    assert result.failed == {"gpu001": "it restarted and is not fit: 7 of 8 GPUs"}
    assert set(scheduler.reasons) == {"gpu001"}
    assert set(result.held) == {"gpu003", "gpu004"}
    assert result.exit_code is Exit.FAILED


def test_a_node_that_never_comes_back_is_a_failure_with_its_last_message(tmp_path: Path) -> None:
    scheduler = SchedulerDouble(dict.fromkeys(NODES, 0.0))
    result = _reboot(scheduler, Machines(tmp_path, scheduler, gone=["gpu002"]))
    assert result.failed == {"gpu002": "it did not come back within 30 minutes: connection closed"}


@pytest.mark.parametrize(
    ("slurmd", "state", "code", "message"),
    [
        ("active", "IDLE+DRAIN", 0, ""),
        ("activating", "IDLE+DRAIN", 1, "slurmd is activating"),
        ("active", "DOWN+DRAIN+NOT_RESPONDING", 1, "the controller counts it as DOWN+DRAIN"),
    ],
)
def test_a_node_is_fit_when_slurmd_has_registered(
    tmp_path: Path, slurmd: str, state: str, code: int, message: str
) -> None:
    shell = LocalShell(tmp_path / "bin")
    shell.has("systemctl", f"echo {slurmd}; [ {slurmd} = active ]")
    shell.has("scontrol", f"echo NodeName=gpu001 Arch=x86_64 State={state} ThreadsPerCore=1")
    answer = shell.run_many([HEAD], FIT)["head"]
    assert isinstance(answer, SshResult)
    assert answer.returncode == code
    assert message in answer.stdout


def test_a_start_is_reported_the_same_way_twice(tmp_path: Path) -> None:
    shell = LocalShell(tmp_path / "bin")
    first, second = (shell.run_many([HEAD], STARTED)["head"] for _ in range(2))
    assert first == second
    assert isinstance(first, SshResult)
    assert first.returncode == 0
