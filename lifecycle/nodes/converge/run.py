"""Convergence: Ansible, driven by ansible-runner, on the hosts and steps that are pending.

An interrupted run ends all processes that Ansible started (`processes.py`). Where nothing can run
every step is noted as done.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ....inventory.hosts import ClusterInventory, Host
from ...cluster.open_site import OpenSite
from ...cluster.outcome import failure
from ...cluster.progress import Reporter, StageFinished, StageStarted
from ..ssh import SshSession
from .pending import Pending
from .playbook import WAVE, host_variables, plays, waves
from .processes import end_processes, ended_with_us
from .role_files import collections_path
from .user_roles import collection_folders, hook_steps, write_roles
from .watch import StepFailure, Watch

PASSED_ON = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SSH_AUTH_SOCK", "TMPDIR", "TZ", "USER"})
"""Environment variables that Ansible and ssh inherit; others often hold tokens and keys."""


class ConvergeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, and what wasn't and why."""

    done: dict[str, tuple[str, ...]]
    """Host -> steps that ran and left their stamp."""
    failures: tuple[StepFailure, ...]
    waiting: tuple[str, ...]
    """Hosts with steps left that were not tried: a controller or a whole wave failed first."""
    held: dict[str, str] = {}
    """Host -> why a node in service was left as it is."""

    @property
    def unchanged(self) -> frozenset[str]:
        """Hosts that differ from the spec."""
        return frozenset(self.held) | {f.host for f in self.failures} | frozenset(self.waiting)


def converge(
    pending: Pending,
    inventory: ClusterInventory,
    session: SshSession,
    *,
    secret_files: Mapping[str, Path],
    run_dir: Path,
    report: Reporter,
    rolling: Rolling | None = None,
) -> ConvergeResult:
    """Run the pending steps on the hosts of `inventory`.

    A host whose step fails runs no later step; the others go on. Ansible ends when all hosts of a
    play fail, so it is started again for those that can go on, unless a controller failed: then
    whatever comes next would only wait for it. Large pools are worked on in waves.

    Args:
        pending: what to run; hosts that are not in `inventory` are left out.
        inventory: the hosts, with addresses.
        session: pins their keys and holds the connections.
        secret_files: secret -> file that holds it.
        run_dir: where the playbook, the inventory and Ansible's artifacts are kept.
        report: receives an event for every step.
        rolling: nodes in service that must be drained first, and who drains them; they come last.

    Raises:
        LifecycleError: Ansible could not be run at all.
        KeyboardInterrupt: it was interrupted; Ansible has been ended.
    """
    pending = pending.for_hosts(frozenset(host.name for host in inventory.hosts))
    if not pending.total:
        return ConvergeResult(done={}, failures=(), waiting=())
    collection_folders(hook_steps(pending))  # before anything is changed
    began = time.monotonic()
    report(StageStarted(name="converge", total=pending.total))
    watch = Watch(pending, report)
    session.trust(inventory.hosts)
    controllers = frozenset(host.name for host in inventory.with_role("controller"))
    work = _Work(inventory, session, secret_files, run_dir, watch)
    later = rolling.nodes if rolling else frozenset()
    stopped = False
    for wave in waves(inventory, frozenset(pending.by_host()) - later):
        work.run(pending.for_hosts(wave), controllers)
        stopped = bool(controllers & watch.failures.keys()) or wave <= watch.failures.keys()
        if stopped:
            break
    held: dict[str, str] = {}
    if rolling and not stopped:
        held = rolling.run(lambda nodes: work.change(pending.for_hosts(frozenset(nodes))))
    _finish(report, watch, pending, began)
    remaining = pending.without(watch.done).by_host()
    untried = remaining.keys() - watch.failures.keys() - held.keys()
    return ConvergeResult(
        done={host: tuple(steps) for host, steps in watch.done.items()},
        failures=tuple(watch.failures[host] for host in sorted(watch.failures)),
        waiting=tuple(sorted(untried)),
        held=held,
    )


class Rolling(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a convergence that needs nodes out of service first."""

    nodes: frozenset[str]
    run: Callable[[Callable[[Collection[str]], Mapping[str, str]]], dict[str, str]]
    """Change all nodes with a function that returns failures; return the hosts that were
    excluded.
    """


class _Work:
    """Starts Ansible as often as it takes."""

    def __init__(
        self,
        inventory: ClusterInventory,
        session: SshSession,
        secret_files: Mapping[str, Path],
        run_dir: Path,
        watch: Watch,
    ) -> None:
        self._inventory = inventory
        self._session = session
        self._secret_files = secret_files
        self._run_dir = run_dir
        self._watch = watch
        self._turns = 0

    def run(self, pending: Pending, controllers: frozenset[str]) -> None:
        """Work until everything is done, or nothing moves, or a controller has failed."""
        watch, remaining = self._watch, pending
        while remaining.total and not controllers & watch.failures.keys():
            before = watch.done_count, len(watch.failures)
            directory = self._run_dir / f"ansible-{self._turns}"
            _run_ansible(
                remaining, self._inventory, self._session, self._secret_files, directory, watch
            )
            self._turns += 1
            if (watch.done_count, len(watch.failures)) == before:
                return
            fit = frozenset(pending.by_host()) - watch.failures.keys()
            remaining = pending.without(watch.done).for_hosts(fit)

    def change(self, pending: Pending) -> dict[str, str]:
        """Work on nodes that are out of service; return node -> why for those not done."""
        self.run(pending, frozenset())
        left = pending.without(self._watch.done).by_host()
        failures = self._watch.failures
        return {
            node: failures[node].message if node in failures else f"{steps[0]} did not run"
            for node, steps in left.items()
        }


def _finish(report: Reporter, watch: Watch, pending: Pending, began: float) -> None:
    ok = watch.done_count == pending.total
    summary = f"{watch.done_count}/{pending.total} steps"
    if watch.failures:
        summary += f", {len(watch.failures)} nodes failed"
    seconds = time.monotonic() - began
    report(StageFinished(name="converge", ok=ok, summary=summary, seconds=seconds))


def _run_ansible(  # noqa: PLR0917  # the parts of one call
    pending: Pending,
    inventory: ClusterInventory,
    session: SshSession,
    secret_files: Mapping[str, Path],
    directory: Path,
    watch: Watch,
) -> None:
    import ansible_runner  # noqa: PLC0415  # 0.2 s: only when something is to be done

    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    (directory / "ansible.cfg").write_text("[defaults]\n", encoding="utf-8")
    hooks = hook_steps(pending)
    write_roles(hooks, directory / "roles")
    settings = _environment(directory, len(inventory.hosts), collection_folders(hooks))
    with _interrupts() as interrupted:
        runner = ansible_runner.interface.init_runner(
            private_data_dir=str(directory),
            playbook=plays(pending, secret_files, directory / "roles", joined=True),
            inventory=_inventory(inventory, session, host_variables(pending, secret_files)),
            envvars=dict(settings),
            settings={"pexpect_timeout": 1, "suppress_ansible_output": True},
            event_handler=watch.handle,
            cancel_callback=lambda: interrupted() and _ended(directory),
            quiet=True,
            rotate_artifacts=0,
        )
        runner.config.env = settings | without_secrets(runner.config.env, os.environ)
        with ended_with_us(directory):
            runner.run()
    if interrupted():
        raise KeyboardInterrupt
    if runner.rc not in {0, 2, 4} and not watch.failures and not watch.done_count:
        raise failure(
            "GC922",
            "Ansible could not be run",
            detail=_tail(Path(runner.config.artifact_dir) / "stdout"),
            hint=f"its whole output is in {runner.config.artifact_dir}",
        )


def without_secrets(environment: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return what Ansible needs of an environment: ansible-runner writes it all to a file.

    Args:
        environment: this process's, with what ansible-runner and we set for Ansible.
        ours: this process's.
    """
    return {
        name: value
        for name, value in environment.items()
        if name in PASSED_ON or name.startswith("LC_") or ours.get(name) != value
    }


def _inventory(
    inventory: ClusterInventory, session: SshSession, variables: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    session.connect(inventory.hosts)
    hosts = {
        host.name: {**variables.get(host.name, {}), **session.ansible_variables(host)}
        for host in inventory.hosts
    }
    common = {"ansible_python_interpreter": "/usr/bin/python3"}
    return {"all": {"hosts": hosts, "vars": common}}


def _environment(directory: Path, hosts: int, collections: tuple[Path, ...] = ()) -> dict[str, str]:
    """Return Ansible's settings: ours alone, whatever ansible.cfg lies around."""
    return {
        "ANSIBLE_CONFIG": str(directory / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(map(str, (collections_path(), *collections))),
        "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "False",
        "ANSIBLE_FORKS": str(min(WAVE, max(1, hosts))),
        "ANSIBLE_GATHERING": "explicit",
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_LOCAL_TEMP": str(directory / "tmp"),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_NOCOLOR": "True",
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_SSH_ARGS": "",
        "ANSIBLE_SSH_RETRIES": "2",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C and SIGTERM into ansible-runner's cancel callback: its child must end first.

    The child has a terminal of its own, so the terminal's Ctrl-C does not reach it.
    """
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag.is_set
        return
    before = {
        number: signal.signal(number, lambda *_: flag.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield flag.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ended(directory: Path) -> bool:
    """End what the run in `directory` started, before ansible-runner ends its first process."""
    end_processes(directory)
    return True


def _tail(path: Path) -> str:
    if not path.exists():
        return ""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])


def keep_stamps(pending: Pending, site: OpenSite, hosts: Iterable[Host], report: Reporter) -> None:
    """Have a site's provider note the pending steps of those hosts on which nothing runs."""
    unreal = (host.name for host in hosts if host.site == site.name and not host.is_real)
    mine = pending.for_hosts(frozenset(unreal))
    if not mine.total:
        return
    began = time.monotonic()
    report(StageStarted(name="converge", total=mine.total))
    stamps: dict[str, dict[str, str]] = {}
    for item in mine.steps:
        for host in item.hosts:
            stamps.setdefault(host, {})[item.step.key] = item.digest
    site.provider.keep_stamps(site.context, stamps)
    summary = f"{mine.total} steps simulated: nothing ran"
    report(
        StageFinished(name="converge", ok=True, summary=summary, seconds=time.monotonic() - began)
    )
