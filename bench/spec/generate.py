"""Write the specs that the benchmarks load: many hosts in few pools, or many linked pools."""

from __future__ import annotations


def bare_metal_hosts(hosts: int) -> str:
    """Return a spec with `hosts` bare-metal hosts, each an entry of its own with an address."""
    entries = "\n".join(
        f"      - {{name: gpu{n:05d}, address: 10.{n >> 16}.{n >> 8 & 255}.{n & 255}, "
        f"block: su{n // 64}, leaf: leaf{n // 32:04d}, user: ops, port: 22}}"
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
    machine: dgx-h100
    hosts:
{entries}
scheduler:
  type: slurm
  partitions:
    train: {{pools: [train], default: true}}
"""


def linked_pools(pools: int) -> str:
    """Return a spec with `pools` compute pools that are linked in every way the language has.

    Each pool is in its own partition and in one of all; each partition has its own QOS and account;
    accounts form a tree, each QOS may preempt the one before it; ten pools each share a file
    system. A check that compares all with all becomes quadratic here.
    """
    names = [f"p{n:05d}" for n in range(pools)]
    groups = [names[start : start + 10] for start in range(0, pools, 10)]
    pool_lines = "\n".join(
        f"  {name}: {{site: lab, machine: sim.h100x8, count: 1}}" for name in names
    )
    partition_lines = "\n".join(
        f"    {name}: {{pools: [{name}], max_time: 1d, qos: [q{name}], accounts: [a{name}]}}"
        for name in names
    )
    qos_lines = "\n".join(
        f"    q{name}: {{priority: {n + 1}, preemptible: requeue"
        + (f", preempts: [q{names[n - 1]}]}}" if n else "}")
        for n, name in enumerate(names)
    )
    account_lines = "\n".join(
        f"    a{name}: {{qos: [q{name}], default_qos: q{name}"
        + (f", parent: a{names[(n - 1) // 2]}}}" if n else "}")
        for n, name in enumerate(names)
    )
    storage_lines = "\n".join(
        f"  s{n:05d}: {{type: nfs, mount: /srv/{n:05d}, server: head, pools: [{', '.join(group)}]}}"
        for n, group in enumerate(groups)
    )
    return f"""apiVersion: gcluster/v1
name: bench
sites:
  lab: {{provider: simulated}}
pools:
  head: {{site: lab, role: controller}}
{pool_lines}
storage:
{storage_lines}
scheduler:
  type: slurm
  partitions:
    everything: {{pools: [{", ".join(names)}], default: true}}
{partition_lines}
  qos:
{qos_lines}
  accounts:
{account_lines}
"""


def two_mistakes(hosts: int) -> str:
    """Return a spec with `hosts` bare-metal hosts and two mistakes, one near its end."""
    text = bare_metal_hosts(hosts).replace("machine: dgx-h100", "machin: dgx-h100")
    return text.replace("{pools: [train]", "{pools: [trian]")


def long_line(keys: int) -> str:
    """Return a spec with a mistake in a line of `keys` keys whose values may be secrets."""
    entries = ", ".join(f"password{n:06d}: env:WORD" for n in range(keys))
    return linked_pools(1) + f"tags: {{{entries}, last: 7}}\n"
