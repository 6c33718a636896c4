"""A whole acceptance on doubles of Slurm and systemd: what is missing is run, once, and judged.

The nodes are this machine three times: the shell of a job, its marks and its exit status are real,
srun, sinfo, systemd-run and fio are scripts.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import LocalShell
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.hosts import existing_hosts
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.operations.acceptance import jobs
from gcluster.lifecycle.operations.acceptance.record import Exclusion, Options, Record
from gcluster.lifecycle.operations.acceptance.run import Acceptance, Accepted

FIO = json.dumps({"jobs": [{"jobname": "read", "read": {"io_bytes": 8, "bw_bytes": 2 * 10**9}}]})
SLOW = FIO.replace("2000000000", "900000000")
ASKED = Options(tests=("fio", "pairs"), path="/scratch", repetitions=1)
EACH_NODE = """
for line; do :; done
echo "$@" >> {folder}/sruns
for node in gpu001 gpu002 gpu003; do SLURMD_NODENAME=$node sh -c "$line"; done
"""
NOW = """
for w; do case $w in --property=StandardOutput=append:*) out=${w#*append:};; esac; script=$w; done
sh "$script" >> "$out" 2>&1
"""


class Hall:
    """Three nodes, their controller and the state of their cluster."""

    def __init__(self, sample: SampleCluster, folder: Path) -> None:
        """Bring simulated nodes up, and let their commands run here."""
        sample.up()
        self.cluster: Cluster = sample.open(running=True)
        self.folder, self.shell = folder, LocalShell(folder / "bin")
        self.shell.has("sudo", 'shift; exec "$@"')
        self.shell.has("systemctl", 'case "$*" in *slurmctld) ;; *) echo inactive; exit 3 ;; esac')
        self.shell.has("squeue", "true")
        self.shell.has("scancel", "true")
        self.shell.has("systemd-run", NOW)
        self.shell.has("srun", EACH_NODE.format(folder=folder))
        self.shell.has("fio", f"echo '{FIO}'")
        self.busy()
        found = existing_hosts(self.cluster)
        hosts = (msgspec.structs.replace(h, connection="ssh", address="::1") for h in found.hosts)
        self.hosts = msgspec.structs.replace(found, hosts=tuple(hosts))

    def busy(self, *nodes: str) -> None:
        """Let these nodes have a job, and the others none."""
        states = {name: "allocated" if name in nodes else "idle" for name in NODES}
        lines = "\n".join(f"echo '{name}|{state}|none'" for name, state in states.items())
        self.shell.has("sinfo", lines)

    def accept(self, options: Options = ASKED) -> Accepted:
        """Run one command."""
        return Acceptance(self.cluster, self.hosts, self.shell, self.folder, silent).go(options)

    @property
    def sruns(self) -> list[str]:
        """The sruns there were."""
        path = self.folder / "sruns"
        return path.read_text().splitlines() if path.exists() else []


NODES = ("gpu001", "gpu002", "gpu003")


@pytest.fixture
def hall(sample: SampleCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hall:
    monkeypatch.setattr(jobs, "FOLDER", str(tmp_path / "outputs"))
    monkeypatch.setattr(jobs, "POLL_S", 0.01)
    return Hall(sample, tmp_path)


def outcomes(accepted: Accepted) -> dict[str, str]:
    return {test.name: test.outcome for test in accepted.report.tests}


def test_what_can_be_tested_is_and_the_rest_is_reported(hall: Hall) -> None:
    accepted = hall.accept()
    assert outcomes(accepted) == {"fio": "pass", "pairs": "not tested"}
    assert accepted.report.verdict == "pass"
    assert accepted.report.not_tested == (
        "pairs: /usr/libexec/gcluster/measure isn't on gpu[001-003] (all of main-1)",
    )
    assert accepted.signature.startswith("-----BEGIN SSH SIGNATURE-----")
    assert list((hall.folder / "outputs").iterdir()) == [], "the controller keeps no output"
    assert len(hall.sruns) == 1, "one job over all nodes"


def test_a_busy_node_is_missing_until_it_is_idle_and_nothing_is_run_twice(hall: Hall) -> None:
    hall.busy("gpu002")
    accepted = hall.accept()
    assert (accepted.report.verdict, accepted.signature) == ("incomplete", "")
    assert [c.verdict for c in accepted.report.certificates] == ["pass", "incomplete", "pass"]
    hall.busy()
    assert hall.accept(Options()).report.verdict == "pass"
    assert ["--nodes=2" in line for line in hall.sruns] == [True, False]


def test_a_node_whose_disk_is_slow_fails_and_its_next_acceptance_is_compared(hall: Hall) -> None:
    hall.shell.has("fio", f"[ $SLURMD_NODENAME != gpu003 ] && echo '{FIO}' || echo '{SLOW}'")
    failed = hall.accept().report
    assert failed.verdict == "fail"
    assert [c.verdict for c in failed.certificates] == ["pass", "pass", "fail"]
    hall.shell.has("fio", f"echo '{FIO}'")
    fixed = hall.accept().report
    assert (fixed.number, fixed.verdict, fixed.compared_with) == (2, "pass", 1)


def test_a_tool_that_ends_without_a_result_fails_its_node(hall: Hall) -> None:
    hall.shell.has("fio", f"[ $SLURMD_NODENAME != gpu001 ] && echo '{FIO}' || exit 3")
    report = hall.accept().report
    assert [c.verdict for c in report.certificates] == ["fail", "pass", "pass"]


def test_the_job_of_a_killed_run_is_followed_though_it_holds_its_nodes(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(Record, "keep_results", killed)
        with pytest.raises(SystemExit):
            hall.accept()
    hall.busy(*NODES)
    assert hall.accept(Options()).report.verdict == "pass"
    assert len(hall.sruns) == 1


def test_an_excluded_node_is_left_out_and_what_it_reported_is_not_judged(hall: Hall) -> None:
    hall.busy("gpu003")
    hall.shell.has("fio", f"[ $SLURMD_NODENAME != gpu002 ] && echo '{FIO}' || exit 3")
    assert hall.accept().report.verdict == "incomplete"
    out = Exclusion(nodes="gpu[002-003]", reason="disk", accepted_by="B. Ops", time="2026-11-25")
    report = hall.accept(Options(exclude=out)).report
    assert (report.verdict, report.nodes) == ("pass", "gpu001")
    assert [c.verdict for c in report.certificates] == ["pass", "excluded", "excluded"]


def test_an_unfinished_one_continues_only_as_it_was_begun(hall: Hall) -> None:
    hall.busy("gpu002")
    hall.accept()
    with pytest.raises(LifecycleError, match="another --repetitions") as refused:
        hall.accept(Options(repetitions=4))
    assert refused.value.diagnostics[0].code == "GC1195"
    assert hall.accept(Options(new=True, tests=("fio",), path="/scratch")).report.number == 2


def test_a_node_that_takes_no_part_is_not_drilled(hall: Hall) -> None:
    with pytest.raises(LifecycleError, match="--drill gpu003: takes no part"):
        hall.accept(Options(nodes=("gpu[001-002]",), drilled=("gpu[002-003]",)))
