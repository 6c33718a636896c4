"""The certificate: what was proven about a cluster, when, with which software, over which wire."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime

import msgspec

import gcluster

from ...inventory.hosts import ClusterInventory
from ...schemas.derived.hostlist import fold
from ..kubernetes import kubectl
from ..kubernetes.managed.login import kubectl_of
from ..kubernetes.managed.nodes import read_nodes
from ..nodes.ssh import SshSession, Unreachable
from .launching.job import SmokeRun
from .run import SmokeResult
from .saved import fault_lines
from .validity import members, read_starts

_WRITTEN = ("written in the spec (smoke.allreduce.floor)", "none was requested")
"""Where a floor comes from that has no reason of its own: a number, or nothing."""

FORMAT = "gcluster/certificate/v1"

_ASK = """
. /etc/os-release && echo "os $PRETTY_NAME"
echo "kernel $(uname -r)"
echo "slurm $(slurmd -V 2>/dev/null || sinfo -V 2>/dev/null)"
echo "kubernetes $(kubelet --version 2>/dev/null)"
echo "containerd $(containerd --version 2>/dev/null | cut -d ' ' -f 3)"
echo "openmpi $(mpirun --version 2>/dev/null | head -n 1)"
echo "nccl $(dpkg-query -W -f '${Version}' libnccl2 2>/dev/null || rpm -q --qf '%{VERSION}' libnccl 2>/dev/null)"
echo "driver $(cat /sys/module/nvidia/version 2>/dev/null || cat /sys/module/amdgpu/version 2>/dev/null)"
"""  # noqa: E501  # shell lines
_NUMBER = re.compile(r"\d+\.\d[\w.+~-]*")


def certificate(
    spec_hash: str, inventory: ClusterInventory, result: SmokeResult, session: SshSession
) -> dict[str, object]:
    """Return the certificate as JSON values.

    Args:
        spec_hash: SHA-256 of the spec that was applied.
        inventory: the hosts that were tested, and their controller.
        result: of the AllReduce.
        session: SSH to the hosts, to read their software.
    """
    simulated = result.verdict.simulated
    return {
        "format": FORMAT,
        "cluster": inventory.cluster,
        "spec_hash": spec_hash,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "gcluster": gcluster.__version__,
        "gpus": "simulated" if simulated else "as the machines have them",
        "verdict": msgspec.to_builtins(result.verdict) | {"verdict": _overall(result)},
        "transport": result.verdict.transport + (" (simulated)" if simulated else ""),
        "fabric": result.verdict.fabric,
        "floor": {
            "busbw_gb_per_s": result.verdict.floor,
            "source": result.verdict.floor_reason or _WRITTEN[result.verdict.floor is None],
        },
        "left_out": result.left_out,
        "members": members((run.nodes for run in result.runs), read_starts(inventory, session)),
        "software": software(inventory, session),
        "runs": [_run(run) for run in result.runs],
        "located": {nodes: fault_lines(located) for nodes, located in result.located.items()},
    }


def software(inventory: ClusterInventory, session: SshSession) -> dict[str, dict[str, str]]:
    """Return part -> version -> hosts (as a range), as the hosts report it.

    A part that a host doesn't have is left out. Unreachable hosts are under "unknown".
    """
    requested = [host for host in inventory.hosts if host.connection == "ssh"]
    answers = session.run_many(requested, _ASK, timeout_s=30)
    found: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    if inventory.is_managed:
        _with_api_facts(inventory, session, found)
    for host, answer in answers.items():
        if isinstance(answer, Unreachable):
            found["unknown"][answer.reason].append(host)
            continue
        for part, version in read_versions(answer.stdout).items():
            found[part][version].append(host)
    return {
        part: {version: fold(hosts) for version, hosts in sorted(versions.items())}
        for part, versions in sorted(found.items())
    }


def _with_api_facts(
    inventory: ClusterInventory,
    session: SshSession,
    found: defaultdict[str, defaultdict[str, list[str]]],
) -> None:
    """Add what the API reports of nodes without SSH."""
    wanted = {host.name for host in inventory.hosts if host.connection == "api"}
    try:
        nodes = read_nodes(kubectl_of(session, inventory))
    except (kubectl.ApiSilent, kubectl.ApiRefused) as error:
        found["unknown"][str(error)] += sorted(wanted)
        return
    for node in nodes:
        for part, version in node.versions.items() if node.name in wanted else ():
            number = _NUMBER.search(version) if part not in {"os", "kernel"} else None
            found[part][number[0] if number else version].append(node.name)


def read_versions(text: str) -> dict[str, str]:
    """Return part -> version out of a node's answer: the number where there is one."""
    versions = {}
    for line in text.splitlines():
        part, _, version = line.partition(" ")
        number = _NUMBER.search(version) if part not in {"os", "kernel"} else None
        if version.strip():
            versions[part] = number[0] if number else version.strip()
    return versions


def _run(run: SmokeRun) -> dict[str, object]:
    return {
        "partition": run.partition,
        "nodes": run.nodes,
        "container": run.container,
        "ranks": run.verdict.ranks,
        "verdict": run.verdict.verdict,
        "transport": run.verdict.transport,
        "fabric": run.verdict.fabric,
        "rails": run.verdict.rails,
        "rail_bytes": _rail_bytes(run),
        "floor": {
            "busbw_gb_per_s": run.verdict.floor,
            "source": run.verdict.floor_reason or _WRITTEN[run.verdict.floor is None],
        },
        "warnings": [f"{warned.code}: {warned.message}" for warned in run.verdict.warnings],
        "reasons": [f"{reason.code}: {reason.message}" for reason in run.verdict.reasons],
        "curve": [
            {
                "size_bytes": row.size,
                "time_us": row.out_of_place.time_us,
                "algbw_gb_per_s": row.out_of_place.algbw,
                "busbw_gb_per_s": row.busbw,
            }
            for row in run.log.rows
        ],
    }


def _rail_bytes(run: SmokeRun) -> dict[str, dict[str, list[int | None]]]:
    """Return node -> device and port -> bytes sent and received while the ranks ran."""
    found: defaultdict[str, dict[str, list[int | None]]] = defaultdict(dict)
    for rail in run.log.rails:
        if rail.sent != 0 or rail.received != 0 or rail.layer != "socket":
            found[rail.host][rail.device] = [rail.sent, rail.received]
    return dict(found)


def _overall(result: SmokeResult) -> str:
    return "pass" if result.passed else "fail"
