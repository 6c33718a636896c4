"""Nodes that come and go with the queue: State=CLOUD, who makes them and when they go."""

from __future__ import annotations

from ....schemas.derived.hostlist import fold
from ....schemas.spec import ClusterSpec, SlurmScheduler
from ...hosts import Host, Placement, SshTarget, elastic_nodes
from ..steps import Json
from .scheduling import written_partitions

PROGRAMS = "/usr/local/libexec/gcluster"
"""Where the programs are that slurmctld calls with a host range."""
SPOOL = "/var/spool/gcluster/burst"
"""Where those programs write their requests, as in roles/slurm/vars/main.yml."""
GONE_S = 300
"""SuspendTimeout: how long giving a node back may take before its name can be used again."""


def placeholders(spec: ClusterSpec) -> list[Host]:
    """Return placeholder hosts for elastic machines: each pool is a block and a leaf.

    Slurm's topology names every node, also those that don't exist; machines of one placement of a
    cloud are together, unless the spec sets the size of a block.
    """
    return [
        Host(
            name=node,
            site=spec.pools[pool].site,
            pool=pool,
            role="compute",
            machine=spec.pools[pool].machine,
            ssh=SshTarget(user=""),
            placement=Placement(
                block=None if spec.pools[pool].nodes_per_block else pool, leaf=pool
            ),
        )
        for pool, nodes in elastic_nodes(spec).items()
        for node in nodes
    ]


def elastic_variables(spec: ClusterSpec, compute: dict[str, tuple[Host, ...]]) -> dict[str, Json]:
    """Return slurm.conf's settings for elastic nodes; {} where there are none.

    Args:
        spec: the cluster.
        compute: compute pool -> its fixed hosts, which are never powered down.
    """
    slurm = spec.scheduler
    if not isinstance(slurm, SlurmScheduler) or not elastic_nodes(spec):
        return {}
    fixed = [host.name for hosts in compute.values() for host in hosts]
    return {
        "slurm_elastic": {
            "resume_program": f"{PROGRAMS}/slurm-resume.sh",
            "resume_fail_program": f"{PROGRAMS}/slurm-resume-failed.sh",
            "suspend_program": f"{PROGRAMS}/slurm-suspend.sh",
            "await_program": f"{PROGRAMS}/slurm-await-nodes.py",
            "partitions": [
                name
                for name, partition in sorted(written_partitions(spec).items())
                if elastic_nodes(spec).keys() & set(partition.pools)
            ],
            "suspend_s": int(slurm.suspend_s),
            "suspend_timeout_s": GONE_S,
            "resume_timeout_s": int(slurm.resume_s),
            "fixed_nodes": fold(fixed) if fixed else "",
        }
    }


def cloud_node_lines(spec: ClusterSpec, alike: dict[str, dict[str, Json]]) -> list[Json]:
    """Return the node lines of elastic machines; their addresses are their names.

    The burst agent sets the address of a created one (`scontrol update NodeName=... NodeAddr=...`).

    Args:
        spec: the cluster.
        alike: pool -> the common fields of its nodes' lines, without names and addresses.
    """
    lines: list[Json] = []
    for pool, names in sorted(elastic_nodes(spec).items()):
        folded = fold(names)
        lines.append({"names": folded, "addresses": folded, **alike[pool], "state": "CLOUD"})
    return lines
