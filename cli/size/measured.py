"""Bandwidths of a cluster's own certificate, in the place of the catalog's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...inventory.size.training import Measured
from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ...lifecycle.smoke.gate import last_certificate
from ...schemas.derived.hostlist import expand
from .own import usage

_GIGA = 1e9
_NUMBER = re.compile(r"-?[0-9]+")


def measured(name: str, wanted: list[str]) -> Measured | None:
    """Return what the gate of a cluster measured; None where no cluster is named.

    Args:
        name: of a cluster, or the path of its spec; "": none.
        wanted: machine types that are compared; the cluster's must be among them.

    Raises:
        LifecycleError: it has no certificate, or one that says nothing of these machines.
    """
    if not name:
        return None
    cluster = open_cluster(name, running=True)
    found = last_certificate(cluster)
    if found is None:
        raise _none(f"{name} has no certificate yet", f"gcluster smoke {name} makes one")
    pools = {name: pool.machine for name, pool in cluster.spec.pools.items()}
    return of_certificate(found, pools, wanted)


def of_certificate(
    found: dict[str, Any], pools: dict[str, str | None], wanted: list[str]
) -> Measured:
    """Return the largest AllReduce of each kind that a certificate has of a machine type.

    Args:
        found: the certificate, as its JSON.
        pools: pool -> machine type.
        wanted: machine types; the first that was measured counts.

    Raises:
        LifecycleError: its GPUs are simulated, it didn't pass, or it has no such machine.
    """
    name = str(found.get("cluster", ""))
    if found.get("gpus") == "simulated":
        raise _none(
            f"the GPUs of {name} are simulated: its bandwidth is that of a double",
            "leave --from-cluster out, and the catalog's figures count",
        )
    if (found.get("verdict") or {}).get("verdict") != "pass":
        raise _none(f"the last gate of {name} didn't pass", f"gcluster smoke {name} says why")
    seen = [*_runs(found, pools)]
    for machine in wanted:
        of_it = [(nodes, busbw) for known, nodes, busbw in seen if known == machine]
        if of_it:
            between = [each for each in of_it if each[0] > 1]
            inside = [busbw for nodes, busbw in of_it if nodes == 1]
            return Measured(
                cluster=name,
                time=str(found.get("time", "")),
                machine=machine,
                between=max(between)[1] * _GIGA if between else None,
                inside=max(inside) * _GIGA if inside else None,
            )
    known = ", ".join(sorted({each[0] for each in seen})) or "none"
    raise usage(
        f"--from-cluster {name}: its certificate has no {', '.join(wanted)}", f"it has: {known}"
    )


def _runs(found: dict[str, Any], pools: dict[str, str | None]) -> Iterator[tuple[str, int, float]]:
    """Yield machine type, nodes and busbw (GB/s) of each AllReduce over nodes of one type."""
    for run in found.get("runs", []):
        hosts = expand(run["nodes"])
        types = {_type(host, pools) for host in hosts}
        machine = types.pop() if len(types) == 1 else None
        busbw = [row["busbw_gb_per_s"] for row in run.get("curve", []) if row["busbw_gb_per_s"]]
        if machine is not None and busbw:
            yield machine, len(hosts), busbw[-1]


def _type(host: str, pools: dict[str, str | None]) -> str | None:
    """Return the machine type of a host, whose name is its pool's and a number."""
    of_it = [name for name in pools if host.startswith(name) and _NUMBER.fullmatch(host, len(name))]
    return pools[max(of_it, key=len)] if of_it else None


def _none(summary: str, hint: str) -> LifecycleError:
    return failure("GC941", summary, hint=hint, exit_code=Exit.FAILED)
