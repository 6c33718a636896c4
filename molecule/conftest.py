"""What the tests of every scenario share: its playbook run again, as an operator would."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pytest
from testinfra.host import Host

ROLES = Path(__file__).parents[1] / "roles"


class Played(subprocess.CompletedProcess[str]):
    """How a run of the playbook ended, and what it printed."""

    @property
    def printed(self) -> str:
        """All it printed, on one line: what a person reads, however Ansible folds and quotes it."""
        text = re.sub(
            r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), self.stdout + self.stderr
        )
        return " ".join(text.replace("\\n", " ").split())


Play: TypeAlias = Callable[..., Played]
Recorded: TypeAlias = "Callable[[str], AbstractContextManager[None]]"
SshOptions: TypeAlias = Callable[..., str]
"""(address, node) -> options of ssh that hold the address to the node's own host key."""
Verified: TypeAlias = Callable[[str], Played]
Answered: TypeAlias = "Callable[[str], Answer]"


@pytest.fixture(scope="session")
def converge() -> Play:
    """Return a function that plays converge.yml with these variables over the scenario's own."""

    def play(*options: str, **variables: object) -> Played:
        playbook = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]) / "converge.yml"
        run = subprocess.run(
            [
                "ansible-playbook",
                "--inventory",
                os.environ["MOLECULE_INVENTORY_FILE"],
                "--extra-vars",
                msgspec.json.encode(variables).decode(),
                *options,
                str(playbook),
            ],
            env={
                **os.environ,
                "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
                "ANSIBLE_DISPLAY_FAILED_STDERR": "false",  # molecule's is true
                "ANSIBLE_FORCE_COLOR": "false",  # likewise
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return Played(run.args, run.returncode, run.stdout, run.stderr)

    return play


@pytest.fixture
def ssh_options(host: Host) -> SshOptions:
    """Return a function that pins a node's host key for an address, and gives ssh's options for it.

    The key is read on the node itself, through the connection that molecule has pinned.
    """

    def pin(address: str, node: Host | None = None) -> str:
        public = (node or host).file("/etc/ssh/ssh_host_ed25519_key.pub").content_string
        kind, key, *_ = public.split()
        file = "/root/known_hosts.test"
        host.check_output(f"echo '{address} {kind} {key}' > {file}")
        return f"-o BatchMode=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile={file}"

    return pin


@pytest.fixture
def recorded(host: Host) -> Recorded:
    """Return a context in which the tools answer as in a recorded case, afterwards as in "good"."""

    @contextmanager
    def during(case: str) -> Iterator[None]:
        host.check_output(f"echo {case} > /usr/local/lib/recordings/case")
        try:
            yield
        finally:
            host.check_output("echo good > /usr/local/lib/recordings/case")

    return during


@pytest.fixture
def verified(converge: Play, recorded: Recorded) -> Verified:
    """Return a function that plays verify alone while the tools answer as in a recorded case."""

    def play(case: str) -> Played:
        with recorded(case):
            return converge(phases=["verify"])

    return play


class Answer(NamedTuple):
    """The result of verify, of a command or a module."""

    rc: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def verify_call(converge: Play) -> tuple[str, dict[str, Any]]:
    """Return the last module that verify runs on the node, and its arguments."""
    run = converge("-vvv", phases=["verify"])
    assert run.returncode == 0, run.stdout
    *_, shown = run.stdout.split('"module_args": ')
    given, _ = json.JSONDecoder().raw_decode(shown)
    tasks = ROLES / Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]).name / "tasks/verify.yml"
    called = re.findall(r"^ +((?:ansible|gcluster)\.\w+\.\w+):", tasks.read_text(), re.MULTILINE)
    return called[-1], given


@pytest.fixture
def answered(host: Host, recorded: Recorded, verify_call: tuple[str, dict[str, Any]]) -> Answered:
    """Return a function that runs verify's module on the node while tools answer as in a case.

    Where verify is this one task, it fails as the module does; a play takes ten times as long.
    """
    module, given = verify_call

    def run_case(case: str) -> Answer:
        with recorded(case):
            if "argv" not in given:
                return _module_run(module, given)
            words = f"printf %s {shlex.quote(given['stdin'] or '')} | {shlex.join(given['argv'])}"
            run = host.run(words)
            return Answer(run.rc, run.stdout, run.stderr)

    return run_case


def _module_run(module: str, given: dict[str, Any]) -> Answer:
    run = subprocess.run(
        [
            "ansible", "all[0]", "--become", "--inventory", os.environ["MOLECULE_INVENTORY_FILE"],
            "--module-name", module, "--args", json.dumps(given),
        ],
        env={
            **os.environ,
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",  # molecule's is yaml
            "ANSIBLE_FORCE_COLOR": "false",  # likewise
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    printed, _ = json.JSONDecoder().raw_decode(run.stdout[run.stdout.index("=> {") + 3 :])
    lines = "\n".join(printed.get("changes", []))
    return Answer(run.returncode, lines, str(printed.get("msg", "")) if run.returncode else "")
