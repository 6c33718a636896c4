"""Who logs in to a node by SSH: people with a job there, administrators, and gcluster itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import testinfra
from conftest import Play, SshOptions
from testinfra.host import Host

testinfra_hosts = ["ansible://head01"]
FOLDER = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])


class Node(NamedTuple):
    """The node with the jobs, and ssh's options that hold it to its own host key."""

    address: str
    pinned: str


@pytest.fixture
def node(host: Host, ssh_options: SshOptions) -> Node:
    """Put the users' key on the controller, and the node's host key; return how it is reached."""
    host.check_output("umask 077; printf %%s %s > /root/people", (FOLDER / "people").read_text())
    shown = host.check_output("scontrol --oneliner show node gpu001")
    address = next(w.removeprefix("NodeAddr=") for w in shown.split() if "NodeAddr=" in w)
    inventory = os.environ["MOLECULE_INVENTORY_FILE"]
    there = testinfra.get_host(f"ansible://gpu001?ansible_inventory={inventory}")
    return Node(address, ssh_options(address, there))


def login(host: Host, node: Node, user: str, command: str = "id --user") -> tuple[int, str]:
    options = f"-i /root/people -o IdentitiesOnly=yes {node.pinned}"
    done = host.run(f"ssh {options} {user}@{node.address} '{command}' || exit 1")
    return done.rc, (done.stdout + done.stderr).strip()


@contextmanager
def job_of(host: Host, user: str) -> Iterator[str]:
    """Have a job of a user run on the node meanwhile."""
    submit = f"runuser -u {user} -- sbatch --parsable --chdir=/ --output=/dev/null"
    job = host.check_output(f"{submit} --mem=1G --wrap='sleep 300'")
    running = f"squeue --noheader --states=running --jobs={job} | grep -q ."
    host.check_output(f"timeout 60 sh -c 'until {running}; do sleep 0.2; done'")
    try:
        yield job
    finally:
        host.check_output(f"scancel {job}")
        gone = f"squeue --noheader --jobs={job} 2>/dev/null | grep -q ."
        host.check_output(f"timeout 60 sh -c 'while {gone}; do sleep 0.2; done'")


def test_who_has_a_job_on_the_node_can_log_in_and_others_are_shown_why(
    host: Host, node: Node
) -> None:
    with job_of(host, "ada"):
        assert login(host, node, "ada") == (0, "2001")
        refused, printed = login(host, node, "bob")
        assert (refused != 0, "you have no active jobs on this node" in printed) == (True, True)
    assert login(host, node, "ada")[0] != 0


def test_administrators_and_root_need_no_job(host: Host, node: Node) -> None:
    assert login(host, node, "grace") == (0, "2003")
    assert login(host, node, "root") == (0, "0")


def test_a_login_shows_the_job_that_it_was_put_into(host: Host, node: Node) -> None:
    """Whether its processes end with the job can't be seen here: a container has no cgroups."""
    with job_of(host, "ada") as job:
        assert login(host, node, "ada", "echo $SLURM_JOB_ID") == (0, job)


def test_a_job_has_a_folder_of_its_own_until_it_ends(host: Host, node: Node) -> None:
    with job_of(host, "ada"):
        listed = login(host, node, "root", "stat --format=%U:%a /srv/gcluster-jobs/*")
        assert listed == (0, "ada:700")
        command = "srun --chdir=/ --mem=100M --overlap sh -c 'echo $TMPDIR'"
        answer = host.check_output(f"runuser -u ada -- {command}")
        assert answer.startswith("/srv/gcluster-jobs/")
    look = "timeout 30 sh -c 'while ls /srv/gcluster-jobs | grep -q .; do sleep 0.2; done'"
    assert login(host, node, "root", look.replace("'", '"'))[0] == 0


def test_without_the_module_administrators_still_log_in_and_it_is_reported(
    host: Host, node: Node, converge: Play
) -> None:
    assert login(host, node, "root", "apt-get remove --yes --quiet libpam-slurm-adopt")[0] == 0
    assert login(host, node, "grace") == (0, "2003")
    assert login(host, node, "bob")[0] != 0
    assert "there is no pam_slurm_adopt.so" in converge(phases=["verify"]).printed
    assert "there is no pam_slurm_adopt.so" in converge(phases=["configure"]).printed
    assert converge().returncode == 0, "the node can be repaired"


def test_any_user_can_log_in_where_the_spec_allows_it(
    host: Host, node: Node, converge: Play
) -> None:
    assert converge(phases=["configure", "verify"], jobs_only=False).returncode == 0
    assert login(host, node, "bob") == (0, "2002")
    assert converge().returncode == 0, "the node can be repaired"
    assert login(host, node, "bob")[0] != 0
