"""The double of DCGM exporter: GPUs of processes that run are busy, others aren't."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from tests.roles.programs import load_program

ROLE = Path(__file__).parents[2] / "roles/dcgm_exporter/files"
GPUS, POWER_W = 8, 700.0


@pytest.fixture(scope="module")
def double() -> ModuleType:
    return load_program(ROLE / "libexec/dcgm-double.py", "dcgm_double")


def process(proc: Path, pid: int, gpus: str, ticks: int) -> None:
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    environment = b"A=1\0SLURM_JOB_ID=7\0" + f"SLURM_JOB_GPUS={gpus}\0".encode()
    (folder / "environ").write_bytes(environment if gpus else b"SLURM_JOB_ID=7\0")
    # The name of a program may have blanks and brackets.
    times = f"{pid} (a ) b) R " + "0 " * 10 + f"{ticks} 0 " + "0 " * 20
    (folder / "stat").write_text(times)


def test_a_gpu_is_busy_while_its_job_computes_and_idle_while_it_sleeps(
    double: ModuleType, tmp_path: Path
) -> None:
    gpus = double.Gpus(GPUS, POWER_W, tmp_path)
    process(tmp_path, 10, "2,3", 0)
    process(tmp_path, 11, "5", 0)
    process(tmp_path, 12, "", 0)
    gpus.update(now=1000.0)
    process(tmp_path, 10, "2,3", 5 * double.TICKS)
    process(tmp_path, 12, "", 9 * double.TICKS)
    gpus.update(now=1010.0)

    assert gpus.busy == [0, 0, 0.5, 0.5, 0, 0, 0, 0]
    assert [gpu for gpu in range(GPUS) if gpus.held[gpu]] == [2, 3, 5]
    assert gpus.values(2)["DCGM_FI_DEV_GPU_UTIL"] == 50
    assert gpus.values(2)["DCGM_FI_DEV_POWER_USAGE"] == 70 + 0.5 * 630


def test_it_serves_each_field_of_the_list_for_each_gpu_and_faults(
    double: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = tmp_path / "faults.json"
    faults.write_text('{"3": {"DCGM_FI_DEV_XID_ERRORS": 79}}')
    monkeypatch.setattr(double, "FAULTS", faults)
    rows = double.fields((ROLE / "counters.csv").read_text(encoding="utf-8"))

    page = double.page(double.Gpus(GPUS, POWER_W, tmp_path), rows, "H100").splitlines()

    served = [line for line in page if not line.startswith("#")]
    assert len(served) == 1 + GPUS * len(rows)
    assert served[0] == "gcluster_dcgm_double 1"
    xids = [line.rpartition(" ")[2] for line in served if line.startswith("DCGM_FI_DEV_XID")]
    assert xids == ["0", "0", "0", "79", "0", "0", "0", "0"]
    assert all('modelName="simulated H100"' in line for line in served[1:])


def test_a_gpu_s_metrics_are_there_once_for_each_job_that_its_file_names(
    double: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "2").write_text("7\n")
    (tmp_path / "3").write_text('8\na"} 1\n')
    (tmp_path / "4").write_text("")
    rows = [("DCGM_FI_PROF_SM_ACTIVE", "gauge", "")]

    page = double.page(double.Gpus(GPUS, POWER_W, tmp_path), rows, "H100", str(tmp_path))

    served = [line for line in page.splitlines() if line.startswith("DCGM_")]
    assert len(served) == GPUS + 1
    named = [line.partition('"double"')[2] for line in served if "hpc_job" in line]
    assert named == [',hpc_job="7"} 0.0', ',hpc_job="8"} 0.0', r',hpc_job="a\"} 1"} 0.0']


def test_a_process_whose_environment_is_closed_has_the_gpus_of_its_job(
    double: ModuleType, tmp_path: Path
) -> None:
    """Root without rights to trace reads no other user's environment."""
    proc, jobs = tmp_path / "proc", tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "5").write_text("7\n")

    def running(pid: int, parent: int, name: str, ticks: int, line: bytes = b"") -> None:
        (proc / str(pid)).mkdir(parents=True, exist_ok=True)
        (proc / str(pid) / "stat").write_text(
            f"{pid} ({name}) R {parent} " + "0 " * 9 + f"{ticks} 0 " + "0 " * 20
        )
        (proc / str(pid) / "cmdline").write_bytes(line)

    running(10, 1, "slurmstepd", 0, b"slurmstepd: [7.batch]\0")
    running(11, 10, "sh", 0)
    running(12, 11, "python3", 0)
    running(20, 1, "python3", 0)
    gpus = double.Gpus(GPUS, POWER_W, proc, str(jobs))
    gpus.update(now=1000.0)
    running(12, 11, "python3", 5 * double.TICKS)
    running(20, 1, "python3", 5 * double.TICKS)
    gpus.update(now=1010.0)

    assert gpus.busy == [0, 0, 0, 0, 0, 0.5, 0, 0]


def test_a_pod_s_gpus_are_its_while_it_has_processes_and_busy_while_these_compute(
    double: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc, logs = tmp_path / "proc", tmp_path / "pods"
    running, ended = "0af1cc1e-4a52-4a4f-8c33-1df1b3cf1a20", "9b1f0a77-0000-4a4f-8c33-1df1b3cf1a21"
    for name in (f"physics_train-0_{running}", f"physics_old_{ended}"):
        (logs / name).mkdir(parents=True)
    entries = [
        {
            "PodUID": uid,
            "ContainerName": "main",
            "ResourceName": "nvidia.com/gpu",
            "DeviceIDs": {"-1": [f"GPU-simulated-{gpu}" for gpu in gpus]},
            "AllocResp": "",
        }
        for uid, gpus in ((running, (4, 6)), (ended, (1,)), ("gone", (2,)))
    ]
    checkpoint = tmp_path / "checkpoint"
    checkpoint.write_text(json.dumps({"Data": {"PodDeviceEntries": entries}, "Checksum": 1}))
    given = double.given_to_pods
    monkeypatch.setattr(double, "given_to_pods", lambda: given(checkpoint, logs))

    def works(ticks: int) -> None:
        process(proc, 20, "", ticks)
        slices = f"/kubepods.slice/kubepods-pod{running.replace('-', '_')}.slice/cri-containerd-1"
        (proc / "20/cgroup").write_text(f"0::{slices}.scope\n")

    proc.mkdir()
    gpus = double.Gpus(GPUS, POWER_W, proc)
    works(0)
    gpus.update(now=1000.0)
    works(5 * double.TICKS)
    gpus.update(now=1010.0)

    assert gpus.busy == [0, 0, 0, 0, 0.5, 0, 0.5, 0]
    page = double.page(gpus, [("DCGM_FI_PROF_SM_ACTIVE", "gauge", "")], "H100")
    named = {line.split('gpu="')[1][0]: line for line in page.splitlines() if "namespace=" in line}
    assert named.keys() == {"4", "6"}
    assert ',namespace="physics",pod="train-0",container="main"} 0.5' in named["4"]
