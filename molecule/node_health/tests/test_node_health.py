"""On the node: the program, its timer, and a fault from the recordings to the reason and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from conftest import Play
from testinfra.host import Host

RECORDINGS = Path(__file__).parents[1] / "recordings"
CASES = yaml.safe_load((RECORDINGS / "cases.yml").read_text())["cases"]
PLAYED = ["ecc-volatile", "nvlink-inactive", "xid-79", "clock-off", "disk-fails"]
ON_NODE = "/usr/local/lib/recordings"


@pytest.fixture
def play(host: Host) -> Iterator[Callable[[str], None]]:
    """Return a function that plays a case, or the good one; that is played again afterwards."""
    host.check_output(f"cp -r {ON_NODE} /run/good-recordings")

    def run(case: str) -> None:
        host.check_output(f"cp -r /run/good-recordings/. {ON_NODE}")
        if case == "good":
            return
        change = CASES[case]
        script = (
            "import pathlib,sys; f=pathlib.Path(sys.argv[1]); t=f.read_text();"
            "assert sys.argv[2] in t; f.write_text(t.replace(sys.argv[2], sys.argv[3], 1))"
        )
        host.check_output(
            "python3 -c %s %s/%s %s %s", script, ON_NODE, change["in"], change["old"], change["new"]
        )

    yield run
    run("good")
    host.check_output("rm -r /run/good-recordings")
    host.check_output("node-health acknowledge errors")


def test_the_node_is_fit_and_reports_it_to_programs(host: Host) -> None:
    assert host.check_output("node-health check") == "fit"
    report = json.loads(host.check_output("node-health check --json"))
    assert (report["verdict"], report["state"]["name"]) == ("fit", "in-service")
    assert host.file("/run/gcluster/node-health.json").mode == 0o644  # noqa: PLR2004


def test_the_timer_runs_now_and_after_a_reboot_and_its_service_works(host: Host) -> None:
    timer = host.service("gcluster-node-health.timer")
    assert timer.is_running
    assert timer.is_enabled
    host.check_output("systemctl start gcluster-node-health.service")


@pytest.mark.parametrize("case", PLAYED)
def test_a_fault_makes_the_node_unfit_with_its_reason(
    host: Host, play: Callable[[str], None], case: str
) -> None:
    play(case)
    printed = host.run("node-health check")
    assert (printed.rc, printed.stdout.split(":")[0]) == (1, CASES[case]["finds"])


def test_verify_fails_with_the_reason_and_passes_when_the_fault_is_gone(
    play: Callable[[str], None], converge: Play
) -> None:
    play("ecc-volatile")
    failed = converge(phases=["verify"])
    assert failed.returncode != 0
    assert "this node is unfit: ecc-uncorrectable: GPU 0000:19:00.0" in failed.printed
    play("good")
    assert converge(phases=["verify"]).returncode == 0


def test_a_mount_that_is_not_there_keeps_the_node_from_jobs_until_it_is(converge: Play) -> None:
    missing = converge(mounts=[{"path": "/lustre", "type": "lustre"}])
    assert "mount-missing: /lustre is not mounted" in missing.printed
    assert converge().returncode == 0


def test_a_node_in_rma_is_unfit_and_comes_back_through_burn_in_only(host: Host) -> None:
    host.check_output("node-health state set rma --reason 'GPU 3 sent in'")
    assert host.run("node-health check").stdout.startswith("rma: GPU 3 sent in")
    refused = host.run("node-health state set in-service --reason fine")
    assert (refused.rc, "burn-in" in refused.stderr) == (1, True)
    host.check_output("node-health state set burn-in --reason 'GPU 3 is new'")
    assert host.run("node-health check").stdout.startswith("burn-in")
    host.check_output("node-health state set in-service --skip-burn-in --reason 'end of the test'")
    assert host.check_output("node-health check") == "fit"
