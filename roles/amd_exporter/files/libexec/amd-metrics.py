#!/usr/bin/python3
"""Write the metrics of AMD's exporter for node exporter.

AMD's device-metrics-exporter answers all who reach its port, without TLS: it listens on the
loopback address, and its metrics leave the node by node exporter, with its certificate. Names of
metrics are AMD's (docs/configuration/metricslist.md, 1.5.1); of the labels `gpu` is its gpu_id, and
`hpc_job` the job that holds the GPU, by the files that Slurm's Prolog writes. AMD's own prolog
takes Slurm's numbers for gpu_ids as well (debian/usr/local/etc/metrics/slurm/slurm-prolog.sh).
"""

from __future__ import annotations

import http.client
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(os.environ.get("GCLUSTER_TEXTFILES", "/var/lib/prometheus/node-exporter"))
FILE = "gcluster-amd.prom"
JOBS = Path(os.environ.get("GCLUSTER_GPU_JOBS", "/run/gcluster/gpu-jobs"))
PORT = int(os.environ.get("GCLUSTER_AMD_PORT", "9402"))
LIMIT_S = 10
MOST_BYTES = 16 * 2**20
BY_JOB = frozenset({"gpu_gfx_activity"})
"""Metrics with the label of a job: for alerts a GPU stays one series while jobs come and go."""
KEPT = BY_JOB | {
    "gpu_average_package_power",
    "gpu_ecc_correct_total",
    "gpu_ecc_uncorrect_total",
    "gpu_edge_temperature",
    "gpu_energy_consumed",
    "gpu_health",
    "gpu_junction_temperature",
    "gpu_package_power",
    "gpu_total_vram",
    "gpu_used_vram",
    "gpu_violation_hbm_thermal_residency_accumulated",
    "gpu_violation_socket_thermal_residency_accumulated",
    "gpu_violation_vr_thermal_residency_accumulated",
    "pcie_max_speed",
    "pcie_speed",
}
_SAMPLE = re.compile(r"^(?P<name>[a-z_0-9]+)\{(?P<labels>.*)\} (?P<value>[-+.0-9eE]+)$")
_LABEL = re.compile(r'([a-z_0-9]+)="((?:[^"\\]|\\.)*)"')


def samples(text: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield name, labels and value of each kept sample that names its GPU."""
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found is None or found["name"] not in KEPT:
            continue
        labels = dict(_LABEL.findall(found["labels"]))
        if labels.get("gpu_id", "").isdigit():
            yield found["name"], labels, found["value"]


def page(text: str) -> str:
    """Return the metrics of what AMD's exporter says.

    GPUs that are cut into partitions have no job: Slurm counts whole ones.
    """
    read = list(samples(text))
    whole = all(labels.get("gpu_partition_id", "0") in {"", "0", "NA"} for _, labels, _ in read)
    values: dict[str, str] = {}
    for name, labels, value in read:
        gpu = labels["gpu_id"]
        held = jobs(gpu) if whole and name in BY_JOB else []
        for job in held or [""]:
            mine = f'gpu="{gpu}"' + (f',hpc_job="{job}"' if job else "")
            values.setdefault(f"{name}{{{mine}}}", value)
    lines = [f"{series} {value}" for series, value in sorted(values.items())]
    return "".join(f"{line}\n" for line in ["gcluster_amd_exporter_up 1", *lines])


def jobs(gpu: str) -> list[str]:
    """Return the jobs that hold a GPU; no file names none."""
    try:
        found = (JOBS / gpu).read_text(encoding="utf-8").split()
    except OSError:
        return []
    return [job for job in dict.fromkeys(found) if job.isdigit()]


def said() -> str:
    """Return the exporter's page.

    Raises:
        OSError: it doesn't answer, or not with its page.
    """
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=LIMIT_S)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            message = f"AMD's exporter answers {answer.status}"
            raise OSError(message)
        return answer.read(MOST_BYTES).decode("utf-8", "replace")
    except http.client.HTTPException as error:
        raise OSError(f"AMD's exporter: {error!r}") from error
    finally:
        connection.close()


def write(path: Path, text: str) -> None:
    """Replace a file as a whole; node exporter reads names that end with .prom alone."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(path)


def main() -> int:
    """Write the file; where the exporter doesn't answer, that alone is in it."""
    try:
        text = page(said())
    except OSError as error:
        print(error, file=sys.stderr)
        write(FOLDER / FILE, "gcluster_amd_exporter_up 0\n")
        return 1
    write(FOLDER / FILE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
