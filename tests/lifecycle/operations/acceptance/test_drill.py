"""What is broken on purpose is noticed in time and back, or the drill fails and says which.

Slurm, the node and the clock are doubles: a second passes where the script sleeps.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lifecycle.controller import HEAD, LocalShell

from gcluster.lifecycle.nodes.ssh import SshResult
from gcluster.lifecycle.operations.acceptance.execute import DRILL
from gcluster.lifecycle.operations.acceptance.reading.measure import read_measure
from gcluster.lifecycle.operations.acceptance.reading.result import Reading

RAIL = "Ethernet mlx5_0 ens1f0np0"
SCONTROL = """
t=$(cat {clock})
case "$1 $2" in
"show config") printf 'SlurmdTimeout = 30 sec\\nHealthCheckInterval = 50 sec\\n' ;;
"--oneliner show")
    state=IDLE+RESERVED
    if [ -e {folder}/broken ] && [ ! -e {folder}/resumed ]; then
        [ $t -lt {seen} ] || [ $t -ge {back} ] || state='{state}'
    fi
    echo "NodeName=gpu001 State=$state ThreadsPerCore=1 Reason={reason}" ;;
"create "*) {reserve} ;;
"update "*) touch {folder}/resumed ;;
"delete "*) touch {folder}/deleted ;;
esac
"""
SRUN = """
case "$*" in
*systemd-run*) echo "$@" > {folder}/broken ;;
*link_layer*) echo '{rail}' ;;
*) {port} ;;
esac
"""


class Drill(LocalShell):
    """A controller, one node and a clock."""

    def __init__(  # what may be otherwise
        self,
        folder: Path,
        *,
        seen: int = 12,
        back: int = 1000,
        state: str = "DOWN*+NOT_RESPONDING",
        reason: str = "Not responding",
        reserve: str = "true",
        rail: str = RAIL,
        port: str = "true",
    ) -> None:
        """Have the node be out of service from second `seen` to `back`, once it is broken."""
        super().__init__(folder / "bin")
        self.folder, clock = folder, folder / "clock"
        clock.write_text("0")
        names = {"folder": folder, "clock": clock, "seen": seen, "back": back, "state": state}
        self.has("scontrol", SCONTROL.format(reason=reason, reserve=reserve, **names))
        self.has("srun", SRUN.format(folder=folder, rail=rail, port=port))
        self.has("date", f"cat {clock}")
        self.has("sleep", f"echo $(($(cat {clock}) + $1)) > {clock}")

    def go(self, what: str) -> Reading:
        """Run it on gpu001 and read what it printed."""
        line = f"set -- {what} gpu001 main\n{DRILL.read_text()}"
        answer = self.run(HEAD, line)
        assert isinstance(answer, SshResult), answer
        return read_measure(answer.stdout)

    @property
    def broken(self) -> str:
        """The node's command; "": nothing."""
        path = self.folder / "broken"
        return path.read_text() if path.exists() else ""


def test_a_stopped_slurmd_is_noticed_and_the_node_repairs_itself(tmp_path: Path) -> None:
    drill = Drill(tmp_path, seen=43, back=95)
    read = drill.go("service")
    assert {one.metric: one.value for one in read.figures} == {"noticed": 40.0, "back": 2.0}
    assert not read.failures
    assert "sleep 3; systemctl stop slurmd; sleep 90; systemctl start slurmd" in drill.broken
    assert (tmp_path / "deleted").exists(), "nothing is reserved any more"


def test_what_is_not_noticed_in_time_fails(tmp_path: Path) -> None:
    read = Drill(tmp_path, seen=500).go("service")
    assert read.failures == ("measure: not noticed within 90 s that slurmd of gpu001 was down",)


def test_a_node_that_does_not_come_back_fails(tmp_path: Path) -> None:
    (failure,) = Drill(tmp_path, seen=20, back=10**6).go("service").failures
    assert failure.startswith("measure: gpu001 has not come back: NodeName=gpu001 State=DOWN")
    assert (tmp_path / "deleted").exists()


def test_a_node_with_a_job_is_left_alone(tmp_path: Path) -> None:
    drill = Drill(tmp_path, reserve="exit 1")
    assert drill.go("service").failures == ("measure: gpu001 can't be reserved",)
    assert not drill.broken


@pytest.mark.parametrize(
    ("rail", "broken"),
    [
        (RAIL, "ip link set dev ens1f0np0 down; sleep 110; ip link set dev ens1f0np0 up"),
        (
            "InfiniBand mlx5_0 ib",
            "mlxlink -d mlx5_0 --port_state dn; sleep 110; mlxlink -d mlx5_0 --port_state up",
        ),
    ],
)
def test_a_rail_that_is_down_is_noticed_by_its_name_and_the_drain_is_lifted(
    tmp_path: Path, rail: str, broken: str
) -> None:
    reason = "gcluster-health: nic-down: mlx5_0: port is 1: DOWN, 3: Disabled"
    drill = Drill(tmp_path, state="IDLE+DRAIN+RESERVED", reason=reason, rail=rail)
    read = drill.go("link")
    assert not read.failures
    assert {one.metric: one.value for one in read.figures} == {"noticed": 9.0, "back": 0.0}
    assert broken in drill.broken


def test_a_drain_for_another_reason_is_no_notice_of_the_rail(tmp_path: Path) -> None:
    drill = Drill(tmp_path, state="IDLE+DRAIN+RESERVED", reason="gcluster-health: disk-full: /")
    (failure,) = drill.go("link").failures
    assert failure == "measure: the reason does not name mlx5_0: gcluster-health: disk-full: /"


def test_a_rail_that_stays_down_fails(tmp_path: Path) -> None:
    drill = Drill(tmp_path, state="IDLE+DRAIN+RESERVED", reason="mlx5_0: down", port="exit 1")
    assert drill.go("link").failures == ("measure: mlx5_0 of gpu001 has not come back",)


def test_without_a_rail_that_can_be_taken_down_nothing_is_broken(tmp_path: Path) -> None:
    drill = Drill(tmp_path, rail="")
    (failure,) = drill.go("link").failures
    assert failure.startswith("measure: no rail of gpu001 can be taken down")
    assert not drill.broken
