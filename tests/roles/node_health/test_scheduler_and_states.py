"""Drains carry a reason and are ours alone to lift; a repaired node comes back through burn-in.

scontrol is a double: a script that keeps one node's state and reason in a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import recorded

SCONTROL = """#!/bin/sh
cd {folder}
[ ! -e broken ] || {{ echo "slurm_load_node error: Unable to contact slurm controller"; exit 1; }}
case "$*" in
  *"show node gpu001")
    echo "NodeName=gpu001 Arch=x86_64 State=$(cat slurm-state) Reason=$(cat reason)" ;;
  "update NodeName=gpu001 State=DRAIN Reason="*)
    echo IDLE+DRAIN >slurm-state; echo "${{4#Reason=}} [root@2026-11-21T10:00:00]" >reason ;;
  "update NodeName=gpu001 State=RESUME") echo IDLE >slurm-state; : >reason ;;
  *) exit 64 ;;
esac
"""


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    """Return the folder of the double; the node is idle."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    (tmp_path / "bin/scontrol").write_text(SCONTROL.format(folder=tmp_path))
    (tmp_path / "bin/scontrol").chmod(0o755)
    (tmp_path / "slurm-state").write_text("IDLE\n")
    (tmp_path / "reason").write_text("")
    return tmp_path


Check = Callable[..., tuple[int, str]]


def content(slurm: Path, what: str) -> str:
    return (slurm / what).read_text().strip()


def test_an_unfit_node_is_drained_with_the_reason_and_the_program_has_done_its_work(
    slurm: Path, check: Check
) -> None:
    code, line = check("gpu-missing")
    assert (code, line) == (0, "gpu-count: 7 of 8 GPUs [drained]")
    assert content(slurm, "slurm-state") == "IDLE+DRAIN"
    assert content(slurm, "reason").startswith("gcluster-health: gpu-count: 7 of 8 GPUs [root@")
    assert check("gpu-missing")[1].endswith("[is drained]")


def test_a_drain_that_could_not_be_set_is_a_failure(slurm: Path, check: Check) -> None:
    (slurm / "broken").touch()
    code, line = check("gpu-missing")
    assert code == 1
    assert "not reported to Slurm" in line


def test_a_fit_node_needs_no_controller(slurm: Path, check: Check) -> None:
    (slurm / "broken").touch()
    assert check()[0] == 0


def test_others_s_drain_is_neither_overwritten_nor_lifted(slurm: Path, check: Check) -> None:
    (slurm / "slurm-state").write_text("IDLE+DRAIN\n")
    (slurm / "reason").write_text("new cables [ada@2026-11-20T09:00:00]\n")
    assert "was drained already: new cables" in check("gpu-missing")[1]
    check(resume=True)
    assert content(slurm, "slurm-state") == "IDLE+DRAIN"
    assert content(slurm, "reason").startswith("new cables")


@pytest.mark.parametrize(("resume", "state"), [(True, "IDLE"), (False, "IDLE+DRAIN")])
def test_our_own_drain_is_lifted_only_where_the_cluster_reports_it(
    slurm: Path, check: Check, resume: bool, state: str
) -> None:
    check("port-down")
    check(resume=resume)
    assert content(slurm, "slurm-state") == state


def test_a_node_in_rma_stays_drained_even_when_healthy(
    slurm: Path, check: Check, health: Callable[..., int]
) -> None:
    assert health("state", "set", "rma", "--reason", "GPU 3 sent in") == 0
    assert check(resume=True)[1].startswith("rma: GPU 3 sent in")
    assert content(slurm, "slurm-state") == "IDLE+DRAIN"


@pytest.mark.parametrize("state", ["rma", "spare"])
def test_the_way_back_leads_through_burn_in(
    health: Callable[..., int], capsys: pytest.CaptureFixture[str], state: str
) -> None:
    health("state", "set", state, "--reason", "because")
    assert health("state", "set", "in-service", "--reason", "looks well") == 1
    assert "burn-in" in capsys.readouterr().err
    assert health("state", "set", "in-service", "--reason", "tested", "--skip-burn-in") == 0


def test_burn_in_ends_after_clean_runs_in_a_row(
    slurm: Path, check: Check, health: Callable[..., int]
) -> None:
    wanted = {"resume": True, "burn_in": {"runs": 2, "minutes": 0, "dcgm_level": 0}}
    check()
    health("state", "set", "burn-in", "--reason", "new GPU 3")
    assert "1/2 clean runs" in check(**wanted)[1]
    assert check("port-down", **wanted)[1].startswith("burn-in")
    assert "1/2 clean runs" in check(**wanted)[1]
    assert check(**wanted) == (0, f"fit [drain lifted: {BURN_IN}]")
    assert content(slurm, "slurm-state") == "IDLE"


BURN_IN = "burn-in: new GPU 3 (1/2 clean runs)"


def test_burn_in_takes_its_minutes_however_often_it_is_checked(
    slurm: Path, check: Check, health: Callable[..., int]
) -> None:
    wanted = {"burn_in": {"runs": 1, "minutes": 30, "dcgm_level": 0}}
    health("state", "set", "burn-in", "--reason", "new GPU 3")
    check(**wanted)
    assert "2/1 clean runs" in check(**wanted)[1]
    state = json.loads((slurm / "state/state.json").read_text())
    (slurm / "state/state.json").write_text(json.dumps(state | {"clean_since": 1}))
    assert check(**wanted)[1].startswith("fit")


@pytest.mark.parametrize(
    ("message", "ends"), [("passed", "fit"), ('"Fail"', "burn-in"), ("no JSON", "burn-in")]
)
def test_burn_in_waits_for_dcgm_where_the_cluster_requests_it(
    slurm: Path, check: Check, health: Callable[..., int], message: str, ends: str
) -> None:
    wanted = {"burn_in": {"runs": 1, "minutes": 0, "dcgm_level": 3}}
    (slurm / "bin/systemctl").write_text("#!/bin/sh\n")
    (slurm / "bin/systemctl").chmod(0o755)
    recorded.settings(slurm, **wanted)
    health("state", "set", "burn-in", "--reason", "new GPU 3")
    assert "dcgm not run" in check(**wanted)[1]
    answer = slurm / "bin/dcgmi.0.said"
    if message == '"Fail"':
        answer.write_text(answer.read_text().replace('"Pass"', message, 1))
    elif message != "passed":
        answer.write_text(message)
    assert health("burn-in") == (0 if message == "passed" else 1)
    assert check(**wanted)[1].startswith(ends)


def test_a_state_that_can_not_be_read_keeps_the_node_from_jobs(slurm: Path, check: Check) -> None:
    check()
    (slurm / "state/state.json").write_text('{"state": "rm')
    assert check()[1].startswith("not-looked-at")


def test_every_module_of_the_check_is_copied_to_nodes() -> None:
    root = Path(__file__).parents[3]
    copied = (root / "tests/cases/roles/node_health.yaml").read_text()
    files = root / "roles/node_health/files"
    modules = [path.relative_to(files) for path in files.rglob("*.py")]
    assert len(modules) > 15
    assert [str(m) for m in modules if f"/usr/libexec/gcluster/{m}" not in copied] == []
