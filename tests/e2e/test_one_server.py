"""A GPU server that is the whole cluster: slurmctld and slurmd on one node."""

from __future__ import annotations

import pytest

from .conftest import LiveCluster, until

pytestmark = pytest.mark.local

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  box: {{site: here, role: controller{computes}, machine: sim.h100x8}}
{more}
scheduler: {{type: slurm}}
smoke: {{allreduce: {{sizes: 8B..64KiB, iterations: 1}}}}
"""
_MORE = "  gpu: {site: here, machine: sim.h100x8, count: 1}"


def _write_spec(live: LiveCluster, *, computes: bool, more: str = "") -> None:
    answer = ", compute: true" if computes else ""
    live.spec.write_text(SPEC.format(name=live.name, computes=answer, more=more))


def _state(live: LiveCluster) -> str:
    return live.on("box", "sinfo --noheader --Node --format '%N %T'").strip()


def test_one_node_is_the_whole_cluster_and_runs_its_jobs(live: LiveCluster) -> None:
    _write_spec(live, computes=True)
    result = live.json("up", str(live.spec), "--yes")
    assert result["verdict"]["verdict"] == "pass"
    gpus = live.on("box", "srun --gpus=2 sh -c 'echo $SLURM_JOB_NODELIST $SLURM_GPUS_ON_NODE'")
    assert gpus.split() == ["box", "2"]
    assert live.json("plan", str(live.spec))["steps"] == []


def test_it_stops_computing_only_when_its_jobs_have_ended(live: LiveCluster) -> None:
    live.on("box", "cd /tmp && sbatch --wrap 'sleep 600'")
    until(lambda: "R" in live.on("box", "squeue --noheader --format %t"))
    _write_spec(live, computes=False, more=_MORE)
    refused = live.gcluster("up", str(live.spec), "--yes", expect=None)
    assert refused.returncode != 0
    assert "jobs run here: drain the node first" in refused.stdout + refused.stderr

    live.on("box", "scancel --state=RUNNING --user=root")
    until(lambda: not live.on("box", "squeue --noheader").strip())
    live.gcluster("up", str(live.spec), "--yes")
    assert _state(live) == "gpu001 idle"
    assert live.on("box", "systemctl is-active slurmd; true").strip() == "inactive"
