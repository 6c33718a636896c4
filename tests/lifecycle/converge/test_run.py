"""Real Ansible on two real local nodes, with a role that does what each test needs."""

from __future__ import annotations

import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.stacks.ledger_double import RecordingLedger

from gcluster.inventory.compile import CompiledCluster, Group, Step
from gcluster.inventory.compile.steps import Phase, Stage
from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster import places
from gcluster.lifecycle.cluster.progress import Progress, StageProgress, silent
from gcluster.lifecycle.nodes.converge import role_files, run
from gcluster.lifecycle.nodes.converge.pending import pending_steps
from gcluster.lifecycle.nodes.converge.run import ConvergeResult, converge, without_secrets
from gcluster.lifecycle.nodes.converge.stamps import read_stamps
from gcluster.lifecycle.nodes.ssh import SshSession, Unreachable
from gcluster.schemas.load import load_text
from gcluster.stacks.provider import SiteContext
from gcluster.stacks.registry import provider

PHASES: tuple[Phase, ...] = ("install", "configure", "verify")
TASKS = {
    "install": "- {name: Say so, ansible.builtin.raw: 'true'}",
    "configure": """
- name: Fail where it is asked for
  ansible.builtin.command: "sh -c 'echo out; echo why >&2; exit {{ probe_exit[inventory_hostname] | default(0) }}'"
- {name: Take the secret, ansible.builtin.copy: {src: "{{ probe_key }}", dest: /root/probe, mode: "0600"}, no_log: true}
""",  # noqa: E501
    "verify": "- {name: Take long, ansible.builtin.raw: 'sleep {{ probe_sleep }}'}",
}


def test_the_callers_environment_is_not_handed_on() -> None:
    ours = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "s", "GCLUSTER_AGE_KEY": "k", "LC_ALL": "C"}
    kept = without_secrets(ours | {"ANSIBLE_FORKS": "5"}, ours)
    assert kept == {"PATH": "/bin", "LC_ALL": "C", "ANSIBLE_FORKS": "5"}


class Nodes:
    """Two local nodes, and one role to converge them with."""

    def __init__(self, inventory: ClusterInventory, session: SshSession, folder: Path) -> None:
        """Hold what every test uses."""
        self.inventory = inventory
        self.session = session
        self.folder = folder
        self.secret = folder / "secret"
        self.secret.write_text("CANARY-OF-THE-SECRET")

    def converge(
        self, reported: list[Progress] | None = None, *, sleep: int = 0, **exits: int
    ) -> ConvergeResult:
        """Run the role on both nodes; `exits` is host -> exit status of configure."""
        variables = {"probe_exit": exits, "probe_sleep": sleep}
        steps = tuple(
            Step(
                stage=Stage.BASE,
                role="probe",
                phase=phase,
                variables=variables,
                secrets={"probe_key": "munge"} if phase == "configure" else {},
            )
            for phase in PHASES
        )
        names = tuple(host.name for host in self.inventory.hosts)
        compiled = CompiledCluster(
            cluster="probe", groups=(Group(name="all", hosts=names, steps=steps),)
        )
        run_dir = self.folder / f"run-{secrets.token_hex(3)}"
        run_dir.mkdir()
        return converge(
            pending_steps(compiled, {}, {}),
            self.inventory,
            self.session,
            secret_files={"munge": self.secret},
            run_dir=run_dir,
            report=silent if reported is None else reported.append,
        )

    def stamps(self) -> dict[str, set[str]]:
        """Return host -> the steps that are stamped there."""
        found = read_stamps(self.session, self.inventory.hosts)
        return {host: set(s) for host, s in found.items() if not isinstance(s, Unreachable)}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, ...]]:
    """Start a controller and a node, and take them away in the end."""
    name = f"converge-{secrets.token_hex(3)}"
    text = f"""apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: 1}}
scheduler: {{type: slurm}}
"""
    spec = load_text(text, file="probe.yaml").spec
    assert spec is not None
    workdir = tmp_path_factory.mktemp("workdir")
    workdir.chmod(0o700)
    context = SiteContext(
        spec=spec,
        site="here",
        cluster_id=secrets.token_hex(4),
        workdir=workdir,
        cache=places.cache_home(),
        ledger=RecordingLedger(),
        emit=lambda _: None,
    )
    local = provider("local")
    try:
        local.apply(context)
        yield local.hosts(context)
    finally:
        local.destroy(context)


@pytest.fixture
def nodes(
    hosts: tuple[Host, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Nodes]:
    """Give the nodes without stamps, and a collection with nothing but the role."""
    role = tmp_path / "collections/ansible_collections/gcluster/cluster/roles/probe"
    tasks, traces = role / "tasks", role / "meta/traces.yml"
    for path in (tasks, traces.parent):
        path.mkdir(parents=True)
    traces.write_text("---\n{}\n")
    for phase, text in TASKS.items():
        (tasks / f"{phase}.yml").write_text(f"---\n{text}\n")
    for module in (role_files, run):
        monkeypatch.setattr(module, "collections_path", lambda: tmp_path / "collections")
    role_files.role_digest.cache_clear()
    role_files.files_of.cache_clear()
    with SshSession(tmp_path) as session:
        session.run_many(hosts, "rm -rf /var/lib/gcluster/stamps")
        yield Nodes(ClusterInventory(cluster="probe", hosts=hosts), session, tmp_path)
        session.close()
    role_files.role_digest.cache_clear()
    role_files.files_of.cache_clear()


@pytest.mark.local
def test_every_step_runs_and_is_stamped_and_counted(nodes: Nodes) -> None:
    reported: list[Progress] = []
    result = nodes.converge(reported)
    assert result.failures == ()
    assert nodes.stamps() == {h.name: {f"probe.{p}" for p in PHASES} for h in nodes.inventory.hosts}
    counted = [p.done for p in reported if isinstance(p, StageProgress)]
    assert counted == sorted(counted)
    assert counted[-1] == 6


@pytest.mark.local
def test_a_host_that_fails_stops_there_is_named_and_the_other_continues(nodes: Nodes) -> None:
    result = nodes.converge(gpu001=3)
    (failure,) = result.failures
    assert (failure.host, failure.step) == ("gpu001", "probe.configure")
    assert failure.task.endswith("Fail where it is asked for")
    assert "why" in failure.lines
    assert nodes.stamps()["gpu001"] == {"probe.install"}
    assert nodes.stamps()["head"] == {f"probe.{phase}" for phase in PHASES}


@pytest.mark.local
def test_a_host_that_is_gone_is_named_and_the_other_continues(nodes: Nodes) -> None:
    head, gpu = nodes.inventory.hosts
    gone = msgspec.structs.replace(gpu, ssh=msgspec.structs.replace(gpu.ssh, port=2222))
    nodes.inventory = ClusterInventory(cluster="probe", hosts=(head, gone))
    result = nodes.converge()
    (failure,) = result.failures
    assert (failure.host, failure.task) == ("gpu001", "")
    assert "refused" in failure.message
    assert len(result.done["head"]) == len(PHASES)


@pytest.mark.local
def test_no_secret_is_left_in_the_artifacts(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCLUSTER_AGE_KEY", "CANARY-OF-THE-ENVIRONMENT")
    nodes.converge()
    answer = nodes.session.run(nodes.inventory.hosts[0], "cat /root/probe")
    assert not isinstance(answer, Unreachable)
    assert answer.stdout == "CANARY-OF-THE-SECRET"
    files = [p for p in nodes.folder.rglob("*") if p.is_file() and p != nodes.secret]
    assert [p for p in files if b"CANARY" in p.read_bytes()] == []
    assert len(files) > len(PHASES)


@pytest.mark.local
def test_an_interrupt_ends_ansible_and_keeps_the_stamps_so_far(nodes: Nodes) -> None:
    def interrupt() -> None:
        while not all("probe.configure" in s for s in nodes.stamps().values()):
            time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        nodes.converge(sleep=300)
    killer.join()
    assert all("probe.verify" not in steps for steps in nodes.stamps().values())
    mine = [p for p in Path("/proc").glob("[0-9]*/cmdline") if _names(p, nodes.folder)]
    assert mine == []


def _names(cmdline: Path, folder: Path) -> bool:
    """Whether a process is an Ansible of ours."""
    try:
        words = cmdline.read_bytes()
    except OSError:
        return False
    return b"ansible-playbook" in words and str(folder).encode() in words
