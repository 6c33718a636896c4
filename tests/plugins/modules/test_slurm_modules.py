"""Slurm's daemons are checked, set to a version, reloaded for new files; systemd is a double."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from recorded_machine import Machine

IDLE = "echo NodeName=n1 State=IDLE Reason=none"
CGROUPS = "sys/fs/cgroup/cgroup.controllers"


@pytest.fixture
def node(machine: Machine) -> Machine:
    """Return a node whose slurmd runs and that the controller counts as idle."""
    machine.tool("systemctl", "echo active")
    machine.tool("scontrol", IDLE)
    machine.file("run/slurm/conf/cgroup.conf", "ConstrainCores=yes\n")
    machine.file(CGROUPS, "cpuset cpu io memory pids\n")
    return machine


def problem(machine: Machine, role: str, wait_s: int = 0) -> str:
    """Return what slurm_check says is wrong."""
    return str(machine.call("slurm_check", {"role": role, "wait_seconds": wait_s}).get("msg", ""))


def test_a_node_whose_kernel_has_the_controllers_is_fit(node: Machine) -> None:
    assert problem(node, "node") == ""


@pytest.mark.parametrize(
    ("controllers", "missing"), [("cpu io memory pids", "cpuset"), ("cpuset cpu io", "memory")]
)
def test_a_cgroup_controller_that_is_missing_is_named(
    node: Machine, controllers: str, missing: str
) -> None:
    node.file(CGROUPS, controllers)
    assert f"no cgroup controller {missing}" in problem(node, "node")
    node.file("run/slurm/conf/cgroup.conf", "CgroupPlugin=disabled\n")
    assert problem(node, "node") == "", "a container is not asked for controllers"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("State=IDLE+DRAIN Reason=broken [root@now]", "as IDLE+DRAIN: broken [root@now]"),
        ("State=DOWN* Reason=gcluster up: change", "as DOWN*: gcluster up: change"),
        ("State=IDLE+NOT_RESPONDING Reason=old", "it hasn't registered yet"),
        ("State=IDLE+DRAIN Reason=gcluster up: change", ""),
    ],
)
def test_a_node_that_gets_no_jobs_is_not_fit_unless_this_change_drained_it(
    node: Machine, answer: str, message: str
) -> None:
    node.tool("scontrol", f"echo 'NodeName=n1 {answer}'")
    found = problem(node, "node")
    assert message in found
    assert bool(found) == bool(message)


def test_a_node_that_is_about_to_report_its_restart_is_waited_for(node: Machine) -> None:
    """It counts as down for a moment then, and not as responding until slurmctld has pinged it."""
    reports = "case $* in *slurm-reboot) echo activating ;; *) echo active ;; esac"
    node.tool("systemctl", reports)
    assert "its restart isn't reported" in problem(node, "node")
    done = node.root / "reported"
    node.tool("systemctl", f"if [ -e {done} ]; then echo active; else {reports}; fi; touch {done}")
    assert problem(node, "node", wait_s=30) == ""


def test_a_node_is_waited_for(node: Machine) -> None:
    registered = node.root / "registered"
    node.tool(
        "scontrol", f"[ -e {registered} ] && {IDLE} || echo ' State=UNKNOWN'; touch {registered}"
    )
    assert problem(node, "node", wait_s=30) == ""


def test_old_clients_that_exit_with_0_without_a_response_are_not_accepted(node: Machine) -> None:
    node.tool("scontrol", "echo Slurmctld is DOWN")
    for role in ("login", "controller"):
        assert problem(node, role) == "the controller doesn't answer: Slurmctld is DOWN"


def test_a_partition_that_is_down_is_named(node: Machine) -> None:
    node.tool("scontrol", "echo Slurmctld is UP")
    node.tool("sinfo", "printf 'train up\\ndebug inact\\n'")
    assert problem(node, "controller") == "not every partition is up: debug inact"


class Rest(BaseHTTPRequestHandler):
    """The double of slurmrestd: two versions of its API."""

    lets_anyone_in = False
    errors: tuple[str, ...] = ()

    def do_GET(self) -> None:
        """Answer a request that has the token."""
        allowed = self.lets_anyone_in or self.headers.get("X-SLURM-USER-TOKEN") == "abc.def"
        paths: dict[str, dict[str, str]] = {
            "/slurm/v0.0.41/ping/": {},
            "/slurm/v0.0.42/ping/": {},
            "/slurm/v0.0.42/jobs/": {},
        }
        body = {"paths": paths} if self.path == "/openapi/v3" else {"errors": list(self.errors)}
        self.send_response(200 if allowed and "v0.0.41" not in self.path else 401)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@pytest.fixture
def rest(node: Machine) -> Iterator[Machine]:
    """Return a controller with a double of slurmrestd."""
    server = HTTPServer(("127.0.0.1", 0), Rest)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    node.tool("scontrol", "case $1 in ping) echo is UP ;; token) echo SLURM_JWT=abc.def ;; esac")
    node.tool("sinfo", "echo train up")
    listens(node, server.server_port)
    yield node
    server.shutdown()
    server.server_close()


def listens(node: Machine, port: int) -> None:
    """Write what the role writes where slurmrestd is requested."""
    node.file("etc/slurm/slurmrestd.env", f"# x\nGCLUSTER_REST_LISTEN=0.0.0.0:{port}\n")


def test_an_api_that_requires_a_token_and_reaches_slurmctld_is_healthy(rest: Machine) -> None:
    assert problem(rest, "controller") == ""


def test_an_api_that_lets_anyone_in_is_not_well(
    rest: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rest, "lets_anyone_in", True)
    assert problem(rest, "controller") == "slurmrestd: it lets in who has no token"


def test_errors_of_slurmctld_and_silence_are_reported(
    rest: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rest, "errors", ("Unable to contact slurm controller",))
    assert "Unable to contact slurm controller" in problem(rest, "controller")
    listens(rest, 1)
    assert "no answer at http://127.0.0.1:1" in problem(rest, "controller")


class Host:
    """A host with slurmdbd; systemd, dpkg and Slurm are lines of shell."""

    def __init__(self, machine: Machine) -> None:
        """Install 24.11.5."""
        self.machine = machine
        machine.tool(
            "dpkg-query", 'case "$*" in *smd*) exit 1 ;; esac; printf "installed 24.11.5-1"'
        )
        machine.tool("scontrol", "echo Slurmctld is UP")
        self.daemon = machine.file("usr/sbin/slurmdbd")

    def runs_since(self, started: int) -> None:
        """Have slurmdbd run since a time, and no other unit."""
        self.machine.tool(
            "systemctl",
            f"""case "$*" in
              *ExecMainStartTimestamp*) echo @{started} ;;
              *ExecStart*) echo '{{ path={self.daemon} ; argv[]={self.daemon} -D -s ; }}' ;;
              is-active*slurmdbd | is-active*slurmctld) ;;
              restart*) echo "$*" >> {self.machine.root}/log ;;
              *) exit 3 ;;
            esac""",
        )

    def run(self, version: str, *units: str, check: bool = False) -> dict[str, Any]:
        """Request a version."""
        requested = {
            "version": version,
            "units": units or ("slurmdbd", "slurmd"),
            "wait_seconds": 0,
        }
        return self.machine.call("slurm_version", requested, check=check)

    def restarted(self) -> str:
        """Return what systemctl was called to restart."""
        log = self.machine.root / "log"
        return log.read_text() if log.exists() else ""


@pytest.fixture
def host(machine: Machine) -> Host:
    """Return a host."""
    return Host(machine)


def test_a_daemon_whose_program_was_replaced_under_it_is_started_again(host: Host) -> None:
    host.runs_since(int(time.time()) - 60)
    answer = host.run("24.11.5", check=True)
    assert (answer["changes"], host.restarted()) == (["slurmdbd restarted"], "")
    assert host.run("24.11.5")["changes"] == ["slurmdbd restarted"]
    assert host.restarted() == "restart slurmdbd\n"


def test_a_daemon_that_runs_what_is_installed_is_left_alone(host: Host) -> None:
    host.runs_since(int(time.time()) + 60)
    done = host.run("24.11")
    assert (done["changed"], host.restarted()) == (False, "")


@pytest.mark.parametrize("version", ["24.11.6", "24.1", "25.05"])
def test_another_version_than_the_one_requested_is_refused(host: Host, version: str) -> None:
    host.runs_since(0)
    assert f"Slurm 24.11.5-1 is installed here, not {version}" in host.run(version)["msg"]
    assert host.restarted() == ""
    assert not host.run(version, check=True)["failed"], "it would be installed by then"


def test_a_controller_that_does_not_answer_afterwards_is_an_error(host: Host) -> None:
    host.runs_since(int(time.time()) + 60)
    assert not host.run("24.11.5", "slurmctld")["failed"]
    host.machine.tool("scontrol", "echo Slurmctld is DOWN")
    assert "doesn't answer" in host.run("24.11.5", "slurmctld")["msg"]


def test_a_daemon_that_packages_of_another_name_have_ended_is_started_again(host: Host) -> None:
    host.machine.tool(
        "dpkg-query", 'case "$*" in *smd*) printf "installed 25.11.8-1" ;; *) exit 1 ;; esac'
    )
    runs = host.machine.root / "runs"
    host.machine.tool(
        "systemctl",
        f"""case "$*" in
          is-active*slurmdbd) test -e {runs} ;;
          is-enabled*slurmdbd) ;;
          start*slurmdbd) touch {runs} ;;
          *) exit 3 ;;
        esac""",
    )
    assert host.run("25.11.8")["changes"] == ["slurmdbd started"]


@pytest.mark.parametrize(
    ("version", "changes"),
    [("22.05.8", ["slurmctld restarted", "reconfigured"]), ("24.11.5", ["reconfigured"])],
)
def test_a_controller_that_can_t_add_nodes_is_restarted_before_it_reads_its_files(
    machine: Machine, version: str, changes: list[str]
) -> None:
    calls = machine.root / "calls"
    machine.tool("systemctl", f"echo $* >>{calls}")
    machine.tool(
        "scontrol",
        f"case $1 in ping) echo is UP ;; --version) echo slurm-wlm {version} ;;"
        f" *) echo $* >>{calls} ;; esac",
    )
    assert machine.call("slurm_reconfigure", {}, check=True)["changes"] == changes
    assert not calls.exists()
    assert machine.call("slurm_reconfigure", {})["changes"] == changes
    assert calls.read_text().splitlines()[-1] == "reconfigure"
    assert ("restart slurmctld" in calls.read_text()) == (len(changes) > 1)


def test_files_that_slurmctld_refuses_are_reported(machine: Machine) -> None:
    machine.tool(
        "scontrol",
        "case $1 in ping) echo is UP ;; --version) echo slurm 24.11.5 ;;"
        " *) echo Invalid node name; exit 1 ;; esac",
    )
    assert "Invalid node name" in machine.call("slurm_reconfigure", {})["msg"]
