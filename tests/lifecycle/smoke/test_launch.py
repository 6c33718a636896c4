"""Where Slurm starts the AllReduce, and how."""

from __future__ import annotations

import shlex

import msgspec

from gcluster.inventory.accounting.records import SMOKE_QOS
from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.smoke.launch import launches
from gcluster.lifecycle.smoke.launching.slurm import command
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

POOLS = ("a", "b")


def spec(partitions: str = "") -> ClusterSpec:
    text = f"""apiVersion: gcluster/v1
name: demo
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  a: {{site: here, machine: sim.h100x8, count: 2}}
  b: {{site: here, machine: sim.h100x8, count: 1}}
scheduler: {{type: slurm{partitions}}}
smoke: {{allreduce: {{sizes: 8B..1KiB, iterations: 3}}}}
"""
    loaded = load_text(text, file="demo.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def host(pool: str, number: int) -> Host:
    return Host(
        name=f"{pool}{number:03d}",
        site="here",
        pool=pool,
        role="compute",
        machine="sim.h100x8",
        ssh=SshTarget(user="root"),
    )


CATALOG = load_catalog()
HOSTS = (host("a", 1), host("a", 2), host("b", 1))


def test_without_partitions_all_hosts_take_part_in_the_only_one() -> None:
    (launch,) = launches(spec(), HOSTS, "job", CATALOG)
    assert (launch.partition, launch.nodes) == ("main", ("a001", "a002", "b001"))


def test_a_partition_with_all_pools_is_taken_before_smaller_ones() -> None:
    written = ", partitions: {a: {pools: [a], default: true}, all: {pools: [a, b]}}"
    (launch,) = launches(spec(written), HOSTS, "job", CATALOG)
    assert launch.partition == "all"


def test_pools_that_share_no_partition_are_tested_one_after_the_other() -> None:
    written = ", partitions: {x: {pools: [b]}, y: {pools: [a]}}"
    found = {
        launch.partition: launch.nodes for launch in launches(spec(written), HOSTS, "job", CATALOG)
    }
    assert found == {"x": ("b001",), "y": ("a001", "a002")}


def test_hosts_that_were_left_out_are_not_requested() -> None:
    (launch,) = launches(spec(), HOSTS[:2], "job", CATALOG)
    assert launch.nodes == ("a001", "a002")


def test_the_command_requests_exactly_these_nodes_and_checks_every_size() -> None:
    (launch,) = launches(spec(), HOSTS, "job", CATALOG)
    words = shlex.split(command(launch))
    assert "--nodelist=a[001-002],b001" in words
    assert "--nodes=3" in words
    assert words[words.index("--max-bytes") + 1] == "1024"
    assert words[words.index("--iterations") + 1] == "3"
    assert f"--job-name={launch.job}" in words
    assert not any(word.startswith("--qos") for word in words)


def test_where_accounts_are_kept_the_job_is_of_a_qos_that_no_limit_holds_back() -> None:
    (launch,) = launches(spec(", qos: {normal: {gpu_limit_per_user: 1}}"), HOSTS, "job", CATALOG)
    assert f"--qos={SMOKE_QOS}" in shlex.split(command(launch))


def test_nodes_of_two_sites_are_two_fabric_domains() -> None:
    text = """apiVersion: gcluster/v1
name: demo
sites: {east: {provider: local}, west: {provider: local}}
pools:
  head: {site: east, role: controller}
  a: {site: east, machine: sim.h100x8, count: 2}
  b: {site: west, machine: sim.h100x8, count: 1}
scheduler: {type: slurm}
"""
    loaded = load_text(text, file="demo.yaml", check=False)
    assert loaded.spec is not None, loaded.diagnostics
    hosts = tuple(
        msgspec.structs.replace(h, site={"a": "east", "b": "west"}[h.pool]) for h in HOSTS
    )
    found = launches(loaded.spec, hosts, "job", CATALOG)
    assert [launch.nodes for launch in found] == [("a001", "a002"), ("b001",)]
    assert len({launch.label for launch in found}) == 2


def test_nodes_with_gpus_run_nccl_tests_with_a_rank_a_gpu_and_its_log() -> None:
    hosts = tuple(msgspec.structs.replace(h, machine="dgx-h100") for h in HOSTS)
    (launch,) = launches(spec(), hosts, "job", CATALOG)
    line = command(launch)
    assert launch.ranks == 24
    assert "NCCL_DEBUG=INFO srun" in line
    assert "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/ SHELL=/bin/sh" in line
    assert {"--ntasks-per-node=8", "--gpus-per-node=8"} <= set(shlex.split(line))
    assert "all_reduce_perf -b 8 -e 1024 -f 2 -g 1 -c 1 -w 5 -n 3" in line
    assert "--cpu-bind=none" in shlex.split(line)
