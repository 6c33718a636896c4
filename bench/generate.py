"""Write the specs that the benchmarks load: many hosts in few pools, or many linked pools."""

from __future__ import annotations


def bare_metal_hosts(hosts: int) -> str:
    """Return a spec with `hosts` bare-metal hosts, each an entry of its own with an address."""
    entries = "\n".join(
        f"      - {{name: gpu{n:05d}, address: 10.{n >> 16}.{n >> 8 & 255}.{n & 255}, "
        f"block: su{n // 64}}}"
        for n in range(1, hosts + 1)
    )
    return f"""apiVersion: gcluster/v1
name: bench
sites:
  room: {{provider: bare-metal, ssh: {{user: ops}}}}
pools:
  head: {{site: room, role: controller, hosts: head01}}
  train:
    site: room
    machine: hgx-h100-8
    hosts:
{entries}
scheduler:
  type: slurm
  partitions:
    train: {{pools: [train], default: true}}
"""


def linked_pools(pools: int) -> str:
    """Return a spec with `pools` compute pools, each in its own partition and in one of all.

    The partition of all links every pool to every other: where a compiler looks up each pool
    for each pool, this is where it becomes quadratic.
    """
    names = [f"p{n:05d}" for n in range(pools)]
    pool_lines = "\n".join(
        f"  {name}: {{site: lab, machine: sim.h100x8, count: 1}}" for name in names
    )
    partition_lines = "\n".join(f"    {name}: {{pools: [{name}], max_time: 1d}}" for name in names)
    return f"""apiVersion: gcluster/v1
name: bench
sites:
  lab: {{provider: simulated}}
pools:
  head: {{site: lab, role: controller}}
{pool_lines}
scheduler:
  type: slurm
  partitions:
    everything: {{pools: [{", ".join(names)}], default: true}}
{partition_lines}
"""
