"""Ansible on this node itself, with the roles of the bundle and the Ansible that came with it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from self_converge.settings import STATE

PYTHONS = ("python3.13", "python3.12", "python3.11", "python3")
"""Ansible 2.19 runs on 3.11 to 3.13 (its support matrix, May 2025); modules on the node's own."""

_FATAL = re.compile(r"^fatal: \[[^\]]*\]: \w+! => (.*)$", re.MULTILINE)
_TASK = re.compile(r"^(?:TASK|RUNNING HANDLER) \[(.*)\] \**$", re.MULTILINE)
_START = "from ansible.cli.playbook import main; main()"


@dataclass(frozen=True)
class Failure:
    """Why a playbook ended early."""

    task: str
    message: str


class Interrupted(Exception):  # noqa: N818  # named for what happened
    """This run was ended; the next repeats what it had begun."""


def play(node: str, bundle: Path, runtime: Path, steps: Sequence[str]) -> Failure | None:
    """Run the plays of these steps in order; return why it ended early, None when it didn't.

    Raises Interrupted. What Ansible prints goes to the log, STATE/last.log.
    """
    plays: list[Any] = []
    known = json.loads((bundle / "plays.json").read_text(encoding="utf-8"))
    for step in steps:
        plays += known[step]
    folder = STATE / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    (folder / "ansible.cfg").write_text("[defaults]\n", encoding="utf-8")
    playbook = folder / "playbook.json"
    playbook.write_text(json.dumps(plays), encoding="utf-8")
    words = [_python(), "-c", _START, "--connection=local", "--inventory=" + node + ","]
    output, code = _run([*words, str(playbook)], _environment(bundle, runtime, folder))
    if code == 0:
        return None
    return _failure(output, code)


def _run(words: list[str], environment: dict[str, str]) -> tuple[str, int]:
    log = STATE / "last.log"
    ended: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        ended.append(number)
        os.killpg(process.pid, signal.SIGKILL)

    with log.open("w+", encoding="utf-8", errors="replace") as out:
        process = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/",
            start_new_session=True,
        )  # fmt: skip
        before = {n: signal.signal(n, end) for n in (signal.SIGTERM, signal.SIGINT)}
        try:
            code = process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        out.seek(0)
        output = out.read()
    if ended:
        raise Interrupted(f"it was ended by signal {ended[0]}")
    return output, code


def _environment(bundle: Path, runtime: Path, folder: Path) -> dict[str, str]:
    return {
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "ANSIBLE_COLLECTIONS_PATH": str(bundle),
        "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "False",
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_GATHERING": "explicit",
        "ANSIBLE_HOME": str(folder),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_NOCOLOR": "True",
        "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
        "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": str(runtime),
    }


def _python() -> str:
    for name in PYTHONS:
        found = shutil.which(name, path="/usr/bin")
        if found:
            return found
    return "/usr/bin/python3"


def _failure(message: str, code: int) -> Failure:
    fatal = _FATAL.search(message)
    if fatal is None:
        lines = [line for line in message.strip().splitlines() if line.strip()]
        return Failure(task="", message=lines[-1] if lines else "Ansible ended with " + str(code))
    tasks = _TASK.findall(message[: fatal.start()])
    return Failure(task=tasks[-1] if tasks else "", message=_message(fatal.group(1)))


def _message(result: str) -> str:
    try:
        found = json.loads(result)
    except ValueError:
        return result[:500]
    for item in found.get("results", []):
        if item.get("failed"):
            found = item
            break
    message = str(found.get("msg") or "failed")
    if message == "non-zero return code":
        message = str(found.get("stderr") or found.get("stdout") or message)
    return message.strip().splitlines()[0][:500]
