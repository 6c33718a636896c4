#!/usr/bin/python3
"""Write Slurm's metrics to node exporter's folder.

  slurm-metrics.py nodes   nodes, scheduler, RPCs: two queries of slurmctld
  slurm-metrics.py nodes --accounting   whether slurmdbd responds, and preemptions, too
  slurm-metrics.py jobs    jobs by account, user, QOS and partition, and each that holds GPUs

A timer runs it, so slurmctld is queried at one rate however many scrape, and never concurrently.
Names are those of Slurm 25.11's own plugin (src/plugins/metrics/openmetrics/openmetrics.c) where it
has the figure; what it lacks is called gcluster_slurm_*. That plugin is off unless the spec turns
it on: it responds to all clients on slurmctld's port, without TLS. What it has besides, Prometheus
then queries (role prometheus, which lists the names that are written here).

Jobs are read from `squeue --Format`: `--json` prints 27 kB a job (24.11.5), 137 MB for 5,000.

Where another slurmctld is active, or none, there are no metrics of nodes and jobs. Names of users,
accounts and reasons are labels: escaped, cut to 200 characters, and at most 2,000 sets of them, the
rest added up as "(other)".
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from slurm_preemptions import add_preemptions

FOLDER = Path(os.environ.get("GCLUSTER_TEXTFILES", "/var/lib/prometheus/node-exporter"))
STATE = Path(os.environ.get("GCLUSTER_SLURM_TOTALS", "/var/lib/gcluster/slurm-gpu-seconds.json"))
PREEMPTED = STATE.with_name("slurm-preemptions.json")
LIMIT_S = 20
LONGEST_LABEL = 200
MOST_SERIES = 2000
MOST_JOBS = 10_000
"""Series of metrics that have one for each job which holds GPUs."""
MOST_USERS = 50
OTHER = "(other)"
GAP_S = 300
"""Between two readings of jobs; after a longer pause nothing is added, for what ran is unknown."""

Labels = tuple[tuple[str, str], ...]
SEPARATOR = "\x1f"
WIDTH_OF_NAME = 64
COLUMNS = {
    "id": "JobID:12",
    "state": "State:24",
    "account": "Account:128",
    "user": "UserName:64",
    "qos": "QOS:128",
    "partition": "Partition:1024",
    "reason": "Reason:64",
    "eligible": "EligibleTime:20",
    "start": "StartTime:20",
    "cpus": "NumCPUs:12",
    "nodes": "NumNodes:12",
    "tres": "tres-alloc:512",
    "name": f"Name:{WIDTH_OF_NAME}",
}
"""Field of a job -> the column of `squeue --Format` with its width. The name is the last one, and
short: whatever its owner writes into it, a line of it can't be mistaken for a line of squeue's."""
LEAST = 1024
"""Least number of characters of a line of squeue: its columns are padded."""
OUT_OF_SERVICE = {
    "DRAIN",
    "MAINTENANCE",
    "POWERED_DOWN",
    "POWERING_DOWN",
    "POWERING_UP",
    "REBOOT_ISSUED",
    "REBOOT_REQUESTED",
}
"""States of a node that a user, or Slurm itself, has taken out of service on purpose."""
ABSENT = {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"}
"""States of an elastic node that isn't there, or not yet."""
BASE_STATES = {
    "ALLOCATED": "alloc",
    "DOWN": "down",
    "FUTURE": "future",
    "IDLE": "idle",
    "MIXED": "mixed",
    "UNKNOWN": "unknown",
}
FLAGS = {
    "BLOCKED": "blocked",
    "CLOUD": "cloud",
    "COMPLETING": "completing",
    "FAIL": "fail",
    "INVALID_REG": "invalid_reg",
    "MAINTENANCE": "maint",
    "NOT_RESPONDING": "noresp",
    "PLANNED": "planned",
    "POWERED_DOWN": "powered_down",
    "POWERING_UP": "powering_up",
    "REBOOT_ISSUED": "reboot_issued",
    "REBOOT_REQUESTED": "reboot_req",
    "RESERVED": "resv",
}
SCHEDULER = {
    "agent_count": "agent_cnt",
    "agent_queue_size": "agent_queue_size",
    "agent_thread_count": "agent_thread_cnt",
    "bf_active": "bf_active",
    "bf_backfilled_jobs": "backfilled_jobs",
    "bf_cycle_counter": "bf_cycle_cnt",
    "bf_cycle_last": "bf_cycle_last",
    "bf_cycle_max": "bf_cycle_max",
    "bf_cycle_sum": "bf_cycle_tot",
    "bf_last_depth": "bf_last_depth",
    "bf_queue_len": "bf_queue_len",
    "dbd_agent_queue_size": "slurmdbd_queue_size",
    "jobs_canceled": "sdiag_jobs_canceled",
    "jobs_completed": "sdiag_jobs_completed",
    "jobs_failed": "sdiag_jobs_failed",
    "jobs_started": "sdiag_jobs_started",
    "jobs_submitted": "sdiag_jobs_submitted",
    "schedule_cycle_depth": "schedule_cycle_depth",
    "schedule_cycle_last": "schedule_cycle_last",
    "schedule_cycle_max": "schedule_cycle_max",
    "schedule_cycle_sum": "schedule_cycle_tot",
    "schedule_cycle_total": "schedule_cycle_cnt",
    "schedule_queue_length": "schedule_queue_len",
    "server_thread_count": "server_thread_cnt",
}
"""Key of `sdiag --json` (data_parser v0.0.40 to v0.0.42) -> name in the plugin, after slurm_."""
STATES = (
    "running",
    "pending",
    "completing",
    "suspended",
    "preempted",
    "requeued",
    "completed",
    "cancelled",
    "failed",
    "timeout",
    "node_failed",
    "outofmemory",
)
"""Of jobs, as the plugin writes them; others are counted in slurm_jobs alone."""
SPELT = {"node_fail": "node_failed", "out_of_memory": "outofmemory"}


class NoAnswerError(Exception):
    """A command of Slurm's failed, or took too long."""


class Page:
    """Metrics in Prometheus' text format."""

    def __init__(self) -> None:
        """Begin with none."""
        self.values: dict[str, dict[Labels, float]] = defaultdict(dict)

    def add(self, name: str, value: float, **labels: str) -> None:
        """Add to a metric's value for these labels."""
        family, key = self.values[name], tuple(labels.items())
        most = MOST_JOBS if name.startswith("gcluster_slurm_job_") else MOST_SERIES
        if key not in family and len(family) >= most:
            key = tuple((label, OTHER) for label in labels)
        family[key] = family.get(key, 0) + value

    def text(self) -> str:
        """Return the page; a name that ends with _total is a counter."""
        lines = []
        for name in sorted(self.values):
            kind = "counter" if name.endswith("_total") else "gauge"
            lines.append(f"# TYPE {name} {kind}")
            for labels, value in sorted(self.values[name].items()):
                shown = ",".join(f'{label}="{escaped(word)}"' for label, word in labels)
                lines.append(f"{name}{{{shown}}} {value:.15g}" if shown else f"{name} {value:.15g}")
        return "\n".join(lines) + "\n"


def escaped(word: str) -> str:
    """Return a label's value as the text format has it, without control characters."""
    word = "".join(sign if sign.isprintable() or sign == "\n" else "?" for sign in word)
    word = word[:LONGEST_LABEL].encode("utf-8", "replace").decode()
    return word.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def output_of(*command: str) -> str:
    """Return what a command prints.

    Raises:
        NoAnswerError: it failed, or there was no answer in time.
    """
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=True,
            env={**os.environ, "SLURM_TIME_FORMAT": "%s"},
            timeout=LIMIT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NoAnswerError(f"{command[0]}: {error}") from None
    return done.stdout.decode("utf-8", "replace")


def number(value: Any) -> float:
    """Return a number as Slurm's JSON has it: plain, or with whether it is set."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") else 0
    return float(value or 0)


def in_charge(pings: Iterable[Mapping[str, Any]], host: str) -> bool | None:
    """Return whether this host's slurmctld is the first that answers; None: none does."""
    for ping in pings:
        if ping.get("responding", ping.get("pinged") == "UP"):
            return str(ping["hostname"]).partition(".")[0] == host
    return None


def gpus(tres: str) -> float:
    """Return the GPUs of a list of TRES; typed ones are counted in the plain one already."""
    found = re.search(r"gres/gpu=(\d+)", tres)
    return float(found[1]) if found else 0.0


def memory(tres: str) -> float:
    """Return the bytes of memory of a list of TRES."""
    found = re.search(r"(?:^|,)mem=([0-9.]+)([KMGTP]?)", tres)
    return float(found[1]) * 1024 ** (" KMGTP".index(found[2] or " ")) if found else 0.0


def of_nodes(page: Page, nodes: Iterable[Mapping[str, Any]]) -> None:
    """Add slurmctld's figures of its nodes."""
    page.add("slurm_nodes", 0)
    for kind in (*BASE_STATES.values(), *FLAGS.values(), "drain", "draining", "drained"):
        page.add(f"slurm_nodes_{kind}", 0)
    for node in nodes:
        name, states = str(node["name"]), set(node["state"])
        page.add("slurm_nodes", 1)
        for word, kind in (BASE_STATES | FLAGS).items():
            page.add(f"slurm_nodes_{kind}", word in states)
        busy = bool(states & {"ALLOCATED", "MIXED", "COMPLETING"})
        if "DRAIN" in states:  # as the plugin counts them (src/slurmctld/statistics.c)
            page.add("slurm_nodes_draining" if busy else "slurm_nodes_drain", 1)
            page.add("slurm_nodes_drained", not busy)
        cpus, allocated = number(node["cpus"]), number(node.get("alloc_cpus"))
        used = str(node.get("tres_used") or "")
        for figure, value in {
            "cpus": cpus,
            "cpus_alloc": allocated,
            "cpus_idle": max(cpus - allocated, 0),
            "gpus": gpus(str(node.get("tres") or "")),
            "gpus_alloc": gpus(used),
            "memory_bytes": number(node.get("real_memory")) * 2**20,
            "memory_alloc_bytes": number(node.get("alloc_memory")) * 2**20,
        }.items():
            page.values[f"slurm_node_{figure}"][(("node", name),)] = value
        drained = bool(states & OUT_OF_SERVICE)
        page.values["gcluster_slurm_node_drained"][(("node", name),)] = drained
        if reason := str(node.get("reason") or ""):
            page.values["gcluster_slurm_node_reason"][("node", name), ("reason", reason)] = 1
        of_elastic(page, name, str(node.get("address") or ""), states)
        if states & {"DOWN", "NOT_RESPONDING", "FAIL", "INVALID_REG"}:
            page.values["gcluster_slurm_node_down"][(("node", name),)] = 1
        if "RESERVED" in states and not busy:
            page.values["gcluster_slurm_node_unclaimed"][(("node", name),)] = 1
        if "COMPLETING" in states:
            page.values["gcluster_slurm_node_completing"][(("node", name),)] = 1


def of_elastic(page: Page, name: str, address: str, states: set[str]) -> None:
    """Add where an elastic node that runs is reached; until it has run, that is its name."""
    if "CLOUD" in states and not states & ABSENT and address not in {"", name}:
        page.values["gcluster_slurm_node_address"][("node", name), ("address", address)] = 1


def of_scheduler(page: Page, statistics: Mapping[str, Any]) -> None:
    """Add `sdiag`'s figures: cycles of the scheduler, and the RPCs by type and by user."""
    for key, name in SCHEDULER.items():
        if key in statistics:
            page.add(f"slurm_{name}", number(statistics[key]))
    for each in statistics.get("rpcs_by_message_type", ()):
        kind = str(each["message_type"])
        page.add("gcluster_slurm_rpcs_total", number(each["count"]), type=kind)
        seconds = number(each["total_time"]) / 1e6
        page.add("gcluster_slurm_rpc_seconds_total", seconds, type=kind)
    users = sorted(statistics.get("rpcs_by_user", ()), key=lambda each: -number(each["count"]))
    for each in users[:MOST_USERS]:
        page.add("gcluster_slurm_user_rpcs_total", number(each["count"]), username=each["user"])


def rows(text: str) -> list[dict[str, str]]:
    """Return the jobs of `squeue --Format`."""
    found = []
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.split(SEPARATOR, len(COLUMNS) - 1)]
        if len(cells) == len(COLUMNS) and len(line) >= LEAST:
            found.append(dict(zip(COLUMNS, cells)))
    return found


def of_jobs(page: Page, jobs: Iterable[Mapping[str, str]], now: float) -> Counter[str]:
    """Add slurmctld's figures of jobs; return the GPUs of each account."""
    page.add("slurm_jobs", 0)
    for state in STATES:
        page.add(f"slurm_jobs_{state}", 0)
    for figure in ("cpus_alloc", "gpus_alloc", "memory_alloc", "nodes_alloc"):
        page.add(f"slurm_jobs_{figure}", 0)
    held: Counter[str] = Counter()
    waits: dict[str, list[float]] = defaultdict(list)
    for job in jobs:
        state = job["state"].lower()
        state = SPELT.get(state, state)
        labels = {key: job[key] for key in ("account", "user", "qos", "partition")}
        page.add("slurm_jobs", 1)
        page.add("slurm_partition_jobs", 1, partition=job["partition"])
        if state in STATES:
            page.add(f"slurm_jobs_{state}", 1)
        if state in {"running", "pending"}:
            page.add(f"slurm_partition_jobs_{state}", 1, partition=job["partition"])
            page.add(f"slurm_account_jobs_{state}", 1, account=job["account"])
            page.add(f"slurm_user_jobs_{state}", 1, username=job["user"])
            page.add("gcluster_slurm_jobs", 1, state=state, **labels)
        if state == "pending":
            reason = re.sub(r"[^A-Za-z_ ].*", "", job["reason"])
            page.add("gcluster_slurm_jobs_pending", 1, reason=reason)
            waits[job["partition"]].append(waited(job["eligible"], now))
        if state == "running":
            mine = gpus(job["tres"])
            held[job["account"]] += int(mine)
            of_allocated(page, job, mine, labels)
    for partition, times in waits.items():
        times.sort()
        for share, at in (("0.5", len(times) // 2), ("1", len(times) - 1)):
            name = "gcluster_slurm_pending_wait_seconds"
            page.add(name, times[at], partition=partition, quantile=share)
    return held


def waited(eligible: str, now: float) -> float:
    """Return the seconds since a job could have started; 0 where it can't yet ("N/A")."""
    return max(now - int(eligible), 0) if eligible.isdigit() else 0.0


def of_allocated(page: Page, job: Mapping[str, str], mine: float, labels: dict[str, str]) -> None:
    """Add what a job that runs holds, of GPUs so many."""
    page.add("slurm_jobs_cpus_alloc", number(job["cpus"]))
    page.add("slurm_jobs_nodes_alloc", number(job["nodes"]))
    page.add("slurm_jobs_memory_alloc", memory(job["tres"]))
    page.add("slurm_jobs_gpus_alloc", mine)
    page.add("slurm_partition_jobs_gpus_alloc", mine, partition=job["partition"])
    page.add("gcluster_slurm_gpus", mine, **labels)
    if mine and job["start"].isdigit():
        page.add("gcluster_slurm_job_gpus", mine, hpc_job=job["id"], **labels, job_name=job["name"])
        started = int(job["start"])
        page.add("gcluster_slurm_job_start_time_seconds", started, hpc_job=job["id"])
        wait = waited(job["eligible"], started)
        page.add("gcluster_slurm_job_wait_seconds", wait, hpc_job=job["id"])


def gpu_seconds(held: Mapping[str, int], now: float) -> dict[str, float]:
    """Return the GPU seconds that each account has held since this was first run, and keep them."""
    try:
        kept = json.loads(STATE.read_text(encoding="utf-8"))
        totals, since = dict(kept["totals"]), now - float(kept["at"])
    except (OSError, ValueError, KeyError, TypeError):
        totals, since = {}, 0.0
    for account, count in held.items():
        before = float(totals.get(account, 0))
        totals[account] = before + (count * since if 0 < since <= GAP_S else 0)
    STATE.parent.mkdir(parents=True, exist_ok=True)
    write(STATE, json.dumps({"at": now, "totals": totals}))
    return totals


def write(path: Path, text: str) -> None:
    """Replace a file as a whole; node exporter reads names that end with .prom alone."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(path)


def page_of_nodes(*, accounting: bool) -> Page:
    """Return the page of nodes, scheduler and slurmdbd; where slurmctld doesn't answer, that."""
    page = Page()
    if accounting:
        try:
            output_of("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster")
            page.add("gcluster_slurm_dbd_up", 1)
            add_preemptions(page.add, PREEMPTED, time.time(), output_of)
        except NoAnswerError:
            page.add("gcluster_slurm_dbd_up", 0)
    try:
        nodes = json.loads(output_of("scontrol", "show", "nodes", "--json"))["nodes"]
        statistics = json.loads(output_of("sdiag", "--json"))["statistics"]
    except (NoAnswerError, ValueError, KeyError) as error:
        print(error, file=sys.stderr)
        page.add("gcluster_slurm_up", 0)
        return page
    of_scheduler(page, statistics)
    of_nodes(page, nodes)
    page.add("gcluster_slurm_up", 1)
    return page


def page_of_jobs(now: float) -> Page:
    """Return the page of jobs.

    Raises:
        NoAnswerError: slurmctld doesn't answer.
    """
    columns = ",".join(f"{column}{SEPARATOR}" for column in COLUMNS.values())
    columns = columns.removesuffix(SEPARATOR)
    page = Page()
    said = output_of("squeue", "--noheader", "--states=all", f"--Format={columns}")
    for account, seconds in gpu_seconds(of_jobs(page, rows(said), now), now).items():
        page.add("gcluster_slurm_gpu_seconds_total", seconds, account=account)
    return page


def main() -> int:
    """Write the requested page; remove it where another controller is active."""
    what, path = sys.argv[1], FOLDER / f"gcluster-slurm-{sys.argv[1]}.prom"
    try:
        pings = json.loads(output_of("scontrol", "ping", "--json"))["pings"]
    except (NoAnswerError, ValueError, KeyError):
        pings = []
    charge = in_charge(pings, platform.node().partition(".")[0])
    if charge is False or (charge is None and what == "jobs"):
        path.unlink(missing_ok=True)
        return 0
    if what == "nodes":
        page = page_of_nodes(accounting="--accounting" in sys.argv[2:])
    else:
        page = page_of_jobs(time.time())
    write(path, page.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
