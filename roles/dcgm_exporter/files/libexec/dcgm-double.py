#!/usr/bin/python3
"""A double of dcgm-exporter for simulated GPUs: the published names, over the same TLS.

No GPU is behind it, which is visible in the GPUs' model name, in the driver's version and in the
metric gcluster_dcgm_double. What is real is which job holds a GPU, by the same files that
dcgm-exporter reads (label hpc_job), or which pod, by what the kubelet keeps (labels namespace, pod
and container), and whether that job or pod computes: a GPU is as busy as the
processors are by the processes of what holds it. The fields are those of the real
exporter's list. Faults are put into a file of overrides, GPU -> field -> value:
{"0": {"DCGM_FI_DEV_XID_ERRORS": 79}}.
"""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS = Path("/run/gcluster/dcgm-double.json")
SAMPLE_S = 5
"""Seconds between two readings of the processes."""
IDLE_W = 70.0
"""Power draw of an idle GPU; made up, as all figures here but the share of time are."""
MAX_CLOCK_MHZ, IDLE_CLOCK_MHZ, MEMORY_MIB = 1980, 345, 81559
TICKS = os.sysconf("SC_CLK_TCK")
HELD_BY = re.compile(rb"(?:^|\0)(?:SLURM_STEP_GPUS|SLURM_JOB_GPUS)=([0-9,]+)(?:\0|$)")
CHECKPOINT = Path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
"""The kubelet's own record of which device a container got (pkg/kubelet/cm/devicemanager)."""
POD_LOGS = Path("/var/log/pods")
"""Folders NAMESPACE_POD_UID (pkg/kubelet/kuberuntime, BuildPodLogsDirectory)."""
DEVICE = re.compile(r"GPU-simulated-(\d+)")
POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")
"""In a control group's path; systemd's slices have underscores for dashes."""
STEP = re.compile(rb"slurmstepd: \[(\d+)\.")


def held(environment: bytes) -> list[int]:
    """Return the GPUs that Slurm has given to a process with this environment."""
    found = HELD_BY.search(environment)
    return [int(part) for part in found[1].split(b",") if part] if found else []


def cpu_seconds(stat: str) -> float:
    """Return the user and system time of a process by its /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Held(NamedTuple):
    """A container that the kubelet has given a GPU."""

    namespace: str
    pod: str
    container: str
    uid: str
    """Of the pod."""


def given_to_pods(
    checkpoint: Path = CHECKPOINT, logs: Path = POD_LOGS
) -> dict[int, tuple[Held, ...]]:
    """Return GPU -> the containers that it was given to; the kubelet drops ended ones late."""
    try:
        entries = json.loads(checkpoint.read_text())["Data"]["PodDeviceEntries"] or []
        folders = [path.name.split("_") for path in logs.iterdir()]
    except (OSError, ValueError, KeyError):
        return {}
    names = {parts[2]: (parts[0], parts[1]) for parts in folders if len(parts) == 3}  # noqa: PLR2004  # as BuildPodLogsDirectory joins them
    found: dict[int, tuple[Held, ...]] = defaultdict(tuple)
    for entry in entries:
        uid, container = str(entry["PodUID"]), str(entry["ContainerName"])
        if uid not in names:
            continue
        devices = (name for ids in entry["DeviceIDs"].values() for name in ids)
        for gpu in sorted({int(n[1]) for name in devices if (n := DEVICE.match(name))}):
            found[gpu] += (Held(*names[uid], container, uid),)
    return found


class Processes:
    """The processes of this node at one look, and the GPUs that each has been given.

    Whose environment can't be read, as in a container without rights to trace, has the GPUs of its
    job: that of the slurmstepd which it descends from.
    """

    def __init__(self, proc: Path, jobs: dict[str, list[int]], pods: dict[str, list[int]]) -> None:
        """Read them all; one that ends meanwhile is left out."""
        self.jobs, self.pods = jobs, pods
        self.living: set[str] = set()
        self.parents: dict[str, str] = {}
        self.used: dict[str, float] = {}
        self.given: dict[str, list[int]] = {}
        self.steps: dict[str, str] = {}
        for process in proc.glob("[0-9]*"):
            try:
                stat = (process / "stat").read_text()
                self.used[process.name] = cpu_seconds(stat)
                self.parents[process.name] = stat.rpartition(")")[2].split()[1]
                if "(slurmstepd)" in stat:
                    step = STEP.match((process / "cmdline").read_bytes())
                    self.steps[process.name] = step[1].decode() if step else ""
                if pods and (pod := POD.search((process / "cgroup").read_text())):
                    uid = pod[1].replace("_", "-")
                    self.living.add(uid)
                    self.given[process.name] = pods.get(uid, [])
                    continue
                self.given[process.name] = held((process / "environ").read_bytes())
            except (OSError, IndexError, ValueError):
                continue

    def gpus(self, process: str) -> list[int]:
        """Return the GPUs of a process."""
        if self.given.get(process):
            return self.given[process]
        at, seen = self.parents.get(process), {process}
        while at is not None and at not in seen:
            if at in self.steps:
                return self.jobs.get(self.steps[at], [])
            seen.add(at)
            at = self.parents.get(at)
        return []


class Gpus:
    """The simulated GPUs of this node, and what is known of them now."""

    def __init__(
        self, count: int, power_w: float, proc: Path = Path("/proc"), jobs: str = ""
    ) -> None:
        """Take the GPUs by their number and power limit, and the folder that names their jobs."""
        self.count, self.power_w, self.proc, self.jobs = count, power_w, proc, jobs
        self.busy = [0.0] * count
        self.held = [False] * count
        self.energy_mj = [0.0] * count
        self.pods: dict[int, tuple[Held, ...]] = {}
        """GPU -> the containers that hold it now."""
        self._before: dict[str, float] = {}
        self._at = time.monotonic()

    def update(self, now: float | None = None) -> None:
        """Read the processes that hold GPUs, and the share of time that they ran."""
        now = time.monotonic() if now is None else now
        took, self._at = max(now - self._at, 0.001), now
        spent: dict[int, float] = defaultdict(float)
        after: dict[str, float] = {}
        self.held = [False] * self.count
        by_job: dict[str, list[int]] = defaultdict(list)
        for gpu in range(self.count):
            for job in jobs_of(self.jobs, gpu):
                by_job[job].append(gpu)
        given, by_pod = given_to_pods(), defaultdict(list)
        for gpu, holders in given.items():
            for one in holders:
                by_pod[one.uid].append(gpu)
        processes = Processes(self.proc, by_job, by_pod)
        self.pods = {
            gpu: tuple(one for one in holders if one.uid in processes.living)
            for gpu, holders in given.items()
        }
        for process, used in processes.used.items():
            for gpu in (gpu for gpu in processes.gpus(process) if gpu < self.count):
                self.held[gpu] = True
                after[process] = used
                # A new process has done all of its work since the last reading, at most.
                spent[gpu] += min(used - self._before.get(process, 0.0), took)
        self._before = after
        self.busy = [min(spent[gpu] / took, 1.0) for gpu in range(self.count)]
        for gpu in range(self.count):
            self.energy_mj[gpu] += self.watts(gpu) * took * 1000

    def watts(self, gpu: int) -> float:
        """Return the power that a GPU would draw."""
        return IDLE_W + self.busy[gpu] * (self.power_w - IDLE_W)

    def values(self, gpu: int) -> dict[str, float]:
        """Return what isn't 0 of a GPU that has no fault."""
        busy, used = self.busy[gpu], MEMORY_MIB // 2 if self.held[gpu] else 0
        clock = MAX_CLOCK_MHZ if busy else IDLE_CLOCK_MHZ
        return {
            "DCGM_FI_DEV_SM_CLOCK": clock,
            "DCGM_FI_DEV_MAX_SM_CLOCK": MAX_CLOCK_MHZ,
            "DCGM_FI_DEV_MEM_CLOCK": 2619,
            "DCGM_FI_DEV_GPU_TEMP": round(30 + 35 * busy),
            "DCGM_FI_DEV_MEMORY_TEMP": round(35 + 40 * busy),
            "DCGM_FI_DEV_POWER_USAGE": round(self.watts(gpu), 1),
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": round(self.energy_mj[gpu]),
            "DCGM_FI_DEV_PCIE_LINK_GEN": 5 if busy else 1,  # it slows down where nothing is sent
            "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": 5,
            "DCGM_FI_DEV_PCIE_LINK_WIDTH": 16,
            "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": 16,
            "DCGM_FI_DEV_GPU_UTIL": round(100 * busy),
            "DCGM_FI_DEV_FB_USED": used,
            "DCGM_FI_DEV_FB_FREE": MEMORY_MIB - used,
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE": round(busy, 4),
            "DCGM_FI_PROF_SM_ACTIVE": round(busy, 4),
            "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": round(busy / 2, 4),
        }


def faults() -> dict[str, dict[str, float]]:
    """Return the simulated faults; nothing where the file isn't valid."""
    try:
        found: dict[str, dict[str, float]] = json.loads(FAULTS.read_text())
    except (OSError, ValueError):
        return {}
    return found


def jobs_of(folder: str, gpu: int) -> list[str]:
    """Return the jobs that a GPU's file names, as dcgm-exporter reads it; no file names none."""
    try:
        return Path(folder, str(gpu)).read_text().splitlines() if folder else []
    except OSError:
        return []


def fields(text: str) -> list[tuple[str, str, str]]:
    """Return field, type and help of a list as dcgm-exporter reads it, without labels."""
    rows = (line.split(",", 2) for line in text.splitlines() if line and not line.startswith("#"))
    found = [(name.strip(), kind.strip(), words.strip()) for name, kind, words in rows]
    return [row for row in found if row[1] != "label"]


def page(gpus: Gpus, rows: list[tuple[str, str, str]], model: str, jobs: str = "") -> str:
    """Return all metrics, in the form and with the labels of dcgm-exporter.

    Those of a GPU are there once for each job that its file in the folder `jobs` names, or for each
    container that holds it.
    """
    host, wrong = socket.gethostname(), faults()
    labels = [
        f'gpu="{gpu}",UUID="GPU-double-{host}-{gpu}",pci_bus_id="00000000:{gpu:02X}:00.0",'
        f'device="nvidia{gpu}",modelName="simulated {model}",hostname="{host}",'
        'DCGM_FI_DRIVER_VERSION="double"'
        for gpu in range(gpus.count)
    ]
    series = [
        (gpu, labels[gpu] + holder)
        for gpu in range(gpus.count)
        for holder in [*of_pods(gpus.pods.get(gpu, ())), *of_jobs(jobs_of(jobs, gpu))] or [""]
    ]
    values = [gpus.values(gpu) | wrong.get(str(gpu), {}) for gpu in range(gpus.count)]
    lines = [
        "# HELP gcluster_dcgm_double These are metrics of simulated GPUs, by a double.",
        "# TYPE gcluster_dcgm_double gauge",
        "gcluster_dcgm_double 1",
    ]
    for name, kind, words in rows:
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{{{shown}}} {values[gpu].get(name, 0)}" for gpu, shown in series]
    return "\n".join(lines) + "\n"


def of_pods(holders: tuple[Held, ...]) -> list[str]:
    """Return the labels of containers that hold a GPU, as dcgm-exporter calls them."""
    return [
        f',namespace="{one.namespace}",pod="{one.pod}",container="{one.container}"'
        for one in holders
    ]


def of_jobs(jobs: list[str]) -> list[str]:
    """Return the label of jobs that hold a GPU."""
    return [f',hpc_job="{escaped(job)}"' for job in jobs if job]


def escaped(word: str) -> str:
    """Return a label's value as the text format has it."""
    return word.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def server(address: str, web: str, answer: Callable[[], str]) -> ThreadingHTTPServer:
    """Return a server over TLS for clients of `web`'s authority (exporter-toolkit)."""

    class Metrics(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            body = answer().encode() if self.path == "/metrics" else b"not found\n"
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write no line for each scrape."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if "[" in address else socket.AF_INET

        def finish_request(self, request: Any, client_address: Any) -> None:
            # The handshake is the thread's, so that a client without data blocks no others.
            request.settimeout(10)
            try:
                safe = context().wrap_socket(request, server_side=True)
            except OSError:
                return
            with safe:
                super().finish_request(safe, client_address)

    said = dict(re.findall(r"^\s*(cert_file|key_file|client_ca_file): (\S+)$", web, re.MULTILINE))

    def context() -> ssl.SSLContext:
        """Return the files as they are now: the exporters read them at each connection too."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(said["cert_file"], said["key_file"])
        made.load_verify_locations(said["client_ca_file"])
        made.verify_mode = ssl.CERT_REQUIRED
        return made

    context()  # files that can't be read end the program now
    host, _, port = address.rpartition(":")
    return Server((host.strip("[]"), int(port)), Metrics)


def main() -> None:
    """Serve until stopped; settings are those of dcgm-exporter's environment."""
    settings = os.environ
    jobs = settings.get("DCGM_HPC_JOB_MAPPING_DIR", "")
    power_w = float(settings["GCLUSTER_DOUBLE_POWER_W"])
    gpus = Gpus(int(settings["GCLUSTER_DOUBLE_GPUS"]), power_w, jobs=jobs)
    rows = fields(Path(settings["DCGM_EXPORTER_COLLECTORS"]).read_text())
    model = settings["GCLUSTER_DOUBLE_MODEL"]
    web = Path(settings["DCGM_EXPORTER_WEB_CONFIG_FILE"]).read_text()
    serving = server(settings["DCGM_EXPORTER_LISTEN"], web, lambda: page(gpus, rows, model, jobs))
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    while True:
        gpus.update()
        time.sleep(SAMPLE_S)


if __name__ == "__main__":
    main()
