#!/usr/bin/python3
"""Write the addresses of nodes that come and go with jobs into the files that Prometheus watches.

Slurm's exporter on the controller has the address of each such node while it runs
(gcluster_slurm_node_address), Kubernetes' figures have those of all nodes (kube_node_info, whose
names and labels are kube-state-metrics'); a timer runs this next to Prometheus, which is queried
for them. Where no slurmctld answers, or nothing is known of any node, the files stay as they are.

A node that has just come is listed once its exporter can be reached: until then it is set up, and
not down.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("GCLUSTER_PROMETHEUS", "/etc/gcluster/prometheus"))
QUERY = '{__name__=~"gcluster_slurm_node_address|gcluster_slurm_up|kube_node_info"}'
LIMIT_S = 10
REACHED_S, PARALLEL = 1, 64


def queried(folder: Path, port: int) -> list[Mapping[str, Any]]:
    """Return the samples of Prometheus on this host.

    Raises:
        OSError, ValueError, KeyError: it doesn't answer, or not as expected.
    """
    login = b"gcluster:" + (folder / "password").read_bytes()
    url = f"https://localhost:{port}/api/v1/query?{urllib.parse.urlencode({'query': QUERY})}"
    request = urllib.request.Request(url)
    request.add_header("Authorization", f"Basic {base64.b64encode(login).decode()}")
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    with urllib.request.urlopen(request, timeout=LIMIT_S, context=context) as answer:  # noqa: S310
        samples: list[Mapping[str, Any]] = json.load(answer)["data"]["result"]
    return samples


def addresses(samples: Iterable[Mapping[str, Any]]) -> dict[str, str] | None:
    """Return node -> address of those that run; None where no scheduler says it.

    A cluster of Kubernetes has a control plane, which is a node: an answer without any is none.
    """
    found: dict[str, str] = {}
    answers = False
    for sample in samples:
        labels = sample["metric"]
        if labels["__name__"] == "gcluster_slurm_up":
            answers = answers or float(sample["value"][1]) == 1
        elif labels["__name__"] == "kube_node_info":
            answers = True
            if labels.get("internal_ip"):
                found[labels["node"]] = labels["internal_ip"]
        else:
            found[labels["node"]] = labels["address"]
    return found if answers else None


def targets(
    pools: Iterable[Mapping[str, Any]], running: Mapping[str, str], exporter: str
) -> list[dict[str, Any]]:
    """Return the nodes of pools that have an exporter, as file_sd_configs has them.

    Args:
        pools: each with its name, site, nodes and the ports of its exporters.
        running: node -> address; nodes that no pool has are left out.
        exporter: node, gpu or kubelet.
    """
    found = []
    for pool in pools:
        port = pool["ports"].get(exporter)
        for node in pool["nodes"] if port else ():
            if node in running:
                address = running[node]
                host = f"[{address}]" if ":" in address else address
                labels = {"instance": node, "pool": pool["pool"], "site": pool["site"]}
                found.append({"targets": [f"{host}:{port}"], "labels": labels})
    return found


def reached(target: str) -> bool:
    """Return whether something listens at HOST:PORT."""
    host, _, port = target.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED_S):
            return True
    except OSError:
        return False


def listed(path: Path) -> set[str]:
    """Return the targets that a file has."""
    if not path.exists():
        return set()
    return {one for each in json.loads(path.read_text(encoding="utf-8")) for one in each["targets"]}


def write(path: Path, content: list[dict[str, Any]]) -> None:
    """Replace a file as a whole, where it has something else."""
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(path)


def main() -> int:
    """Write a file for each exporter; return 1 where Prometheus doesn't answer."""
    settings = json.loads((FOLDER / "elastic.json").read_text(encoding="utf-8"))
    try:
        running = addresses(queried(FOLDER, int(settings["port"])))
    except (OSError, ValueError, KeyError) as error:
        print(f"Prometheus doesn't answer: {error}", file=sys.stderr)
        return 1
    if running is not None:
        for exporter in ("node", "gpu", "kubelet"):
            path = FOLDER / f"targets/elastic-{exporter}s.json"
            before, found = listed(path), targets(settings["pools"], running, exporter)
            new = [each["targets"][0] for each in found if each["targets"][0] not in before]
            with ThreadPoolExecutor(PARALLEL) as pool:
                before |= {
                    target for target, answers in zip(new, pool.map(reached, new)) if answers
                }
            write(path, [each for each in found if each["targets"][0] in before])
    return 0


if __name__ == "__main__":
    sys.exit(main())
