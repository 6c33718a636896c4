"""Accounts, elastic nodes and switches in what controllers get, in slurm.conf's own terms."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gcluster.inventory.compile.slurm.accounting import accounting_hosts, slurmdbd_variables
from gcluster.inventory.compile.slurm.daemons import slurm_cluster_variables
from gcluster.inventory.compile.slurm.scheduling import scheduler_parameters
from gcluster.inventory.hosts import Placement, elastic_nodes
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSoftware, ClusterSpec

sys.path.insert(0, str(Path(__file__).parent))
import golden

sys.path.pop(0)

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
  burst: {site: here, machine: sim.h100x8, count: {min: 1, max: 4}}
scheduler:
  type: slurm
"""
_ACCOUNTS = """\
  qos:
    urgent: {priority: 10, preempts: [low]}
    low: {priority: 1, preemptible: requeue}
  accounts: {lab: {}, nlp: {parent: lab}, open: {}}
  partitions:
    main: {pools: [gpu, burst], accounts: [lab], qos: [urgent, low], default: true}
    free: {pools: [gpu]}
"""


def spec_of(scheduler: str) -> ClusterSpec:
    loaded = load_text(_SPEC + scheduler)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def answer(scheduler: str, *, elastic: bool = False) -> dict[str, Any]:
    spec = spec_of(scheduler)
    inventory = golden.inventory_of(spec)
    compute = {pool: inventory.in_pool(pool) for pool in ("gpu", "burst")}
    return slurm_cluster_variables(
        spec,
        compute,
        load_catalog(),
        run_accounting=accounting_hosts(spec, inventory.hosts),
        elastic=elastic,
    )


def test_without_qos_and_accounts_nothing_is_reported_of_a_database() -> None:
    assert not {"slurm_accounting", "slurm_preemption", "slurm_priority"} & answer("").keys()


@pytest.mark.parametrize(
    ("max_time", "expected"),
    [
        ("1h", ["bf_window=1440", "bf_resolution=60"]),
        ("7d", ["bf_window=10080", "bf_resolution=300"]),
        ("14d", ["bf_window=20160", "bf_resolution=600"]),
        ("60d", ["bf_window=43200", "bf_resolution=600"]),
        (None, ["bf_window=43200", "bf_resolution=600"]),
    ],
)
def test_backfill_plans_as_far_as_the_longest_job_runs(
    max_time: str | None, expected: list[str]
) -> None:
    limit = f", max_time: {max_time}" if max_time else ""
    partitions = f"  partitions: {{a: {{pools: [gpu]{limit}}}, b: {{pools: [gpu], max_time: 30m}}}}"
    parameters = answer(partitions)["slurm_scheduler_parameters"]
    # These nodes are simulated.
    assert parameters == ["nohold_on_prolog_fail", "bf_continue", *expected, "sched_interval=5"]


def test_a_job_may_wait_for_few_switches_where_there_are_switches() -> None:
    spec = spec_of("")
    assert "max_switch_wait=86400" in scheduler_parameters(spec, has_topology=True)


def test_a_database_comes_with_limits_weights_and_preemption() -> None:
    variables = answer(_ACCOUNTS)
    assert variables["slurm_accounting"] == {
        "host": "head",
        "backup_host": "",
        "port": 6819,
        "tres": ["gres/gpu"],
        "enforce": ["associations", "limits", "qos"],
    }
    assert variables["slurm_preemption"] is True
    assert variables["slurm_priority"]["fairshare"] == 10_000


def test_a_job_with_a_grace_time_gets_its_own_signal_when_that_begins() -> None:
    with_grace = _ACCOUNTS.replace("requeue}", "requeue, grace: 2m}")
    assert answer(with_grace)["slurm_preempt_signal"] is True
    assert "slurm_preempt_signal" not in answer(_ACCOUNTS)


def test_a_partition_of_an_account_is_for_its_parts_and_for_root() -> None:
    free, main = answer(_ACCOUNTS)["slurm_partitions"]
    assert (main["accounts"], main["qos"]) == (
        ["root", "lab", "nlp"],
        ["gcluster-smoke", "low", "urgent"],
    )
    assert not {"accounts", "qos"} & free.keys()


def test_a_database_of_one_s_own_is_reached_where_the_spec_has() -> None:
    result = "  accounting: {database: 'db.example.edu:3307', password: env:DB, purge_after: 90d}\n"
    spec = spec_of(result)
    variables = slurmdbd_variables(spec, accounting_hosts(spec, golden.inventory_of(spec).hosts))
    assert (variables["slurmdbd_database_host"], variables["slurmdbd_database_port"]) == (
        "db.example.edu",
        3307,
    )
    assert variables["slurmdbd_database_made"] is False
    assert variables["slurmdbd_purge_days"] == 90


def test_no_variable_of_the_database_holds_a_password_or_where_it_is() -> None:
    spec = spec_of("  accounting: {database: db.example.edu, password: env:DB_PASSWORD}\n")
    variables = slurmdbd_variables(spec, accounting_hosts(spec, golden.inventory_of(spec).hosts))
    assert "DB_PASSWORD" not in str(variables)
    assert {name for name in variables if "password" in name} == set()


def test_a_database_that_is_created_runs_with_slurmdbd() -> None:
    spec = spec_of("  accounting: {}\n")
    hosts = golden.inventory_of(spec).hosts
    variables = slurmdbd_variables(spec, accounting_hosts(spec, hosts))
    assert variables["slurmdbd_database_made"] is True
    assert variables["slurmdbd_database_host"] == next(h.address for h in hosts if h.name == "head")


def test_nodes_that_may_come_are_named_after_those_that_are_there() -> None:
    assert elastic_nodes(spec_of("")) == {"burst": ("burst002", "burst003", "burst004")}


def test_nodes_that_may_come_are_cloud_nodes_of_their_partitions() -> None:
    variables = answer("", elastic=True)
    line = variables["slurm_nodes"][-1]
    assert (line["names"], line["addresses"], line["state"]) == (
        "burst[002-004]",
        "burst[002-004]",
        "CLOUD",
    )
    assert variables["slurm_partitions"][0]["nodes"] == "burst[001-004],gpu[001-002]"


def test_a_topology_has_the_nodes_that_may_come_on_a_switch_of_their_own() -> None:
    spec = spec_of("")
    inventory = golden.inventory_of(spec)
    compute = {
        pool: tuple(
            msgspec.structs.replace(host, placement=Placement(leaf=pool))
            for host in inventory.in_pool(pool)
        )
        for pool in ("gpu", "burst")
    }
    variables = slurm_cluster_variables(spec, compute, load_catalog(), elastic=True)
    assert list(variables["slurm_topology"]["groups"]) == [
        {"name": "burst", "nodes": "burst[001-004]"},
        {"name": "gpu", "nodes": "gpu[001-002]"},
    ]


def test_jobs_are_held_back_in_the_partitions_whose_nodes_come_and_go() -> None:
    assert answer("", elastic=True)["slurm_elastic"]["partitions"] == ["main"]
    assert answer(_ACCOUNTS, elastic=True)["slurm_elastic"]["partitions"] == ["main"]


def test_nodes_that_are_always_there_are_never_powered_down() -> None:
    elastic = answer("", elastic=True)["slurm_elastic"]
    assert elastic["fixed_nodes"] == "burst001,gpu[001-002]"


@pytest.mark.parametrize(
    ("message", "seconds"),
    [("", (600, 1800)), ("  suspend_after: 2m\n  resume_timeout: 1h\n", (120, 3600))],
)
def test_when_idle_nodes_go_and_new_ones_answer_is_the_spec_s(
    message: str, seconds: tuple[int, int]
) -> None:
    elastic = answer(message, elastic=True)["slurm_elastic"]
    assert (elastic["suspend_s"], elastic["resume_timeout_s"]) == seconds


@pytest.mark.parametrize(
    ("distribution", "topology"), [("debian-12", "tree"), ("debian-13", "block")]
)
def test_blocks_are_left_to_a_slurm_that_has_them(distribution: str, topology: str) -> None:
    spec = msgspec.structs.replace(
        golden.spec_of("blocks"),
        software=msgspec.convert(
            {"distribution": distribution, "slurm": "distribution"}, ClusterSoftware
        ),
    )
    (told_to_head,) = [
        step.variables["slurm_topology"]
        for group in golden.compiled(spec).groups
        for step in group.steps
        if "slurm_topology" in step.variables
    ]
    assert told_to_head["type"] == topology


def test_without_a_provider_of_elastic_nodes_there_are_none() -> None:
    variables = answer("")
    assert "slurm_elastic" not in variables
    assert all("state" not in line for line in variables["slurm_nodes"])


@pytest.mark.parametrize(("reserved", "mib"), [("1 GiB", 0.95), ("1024 GiB", 0.5)])
def test_jobs_get_what_is_not_reserved_and_never_more_than_95_percent(
    reserved: str, mib: float
) -> None:
    line = answer(f"  memory_reserved: {reserved}\n")["slurm_nodes"][0]
    assert line["memory_mib"] == int(2048 * 1024 * mib)


def test_slurmdbd_takes_the_tokens_that_slurmctld_takes() -> None:
    def secrets(scheduler: str) -> set[str]:
        groups = golden.compiled(spec_of(f"  accounts: {{lab: {{}}}}\n{scheduler}")).groups
        steps = [step for group in groups for step in group.steps]
        (step,) = [step for step in steps if step.key == "slurmdbd.configure"]
        return set(step.secrets.values())

    assert secrets("  rest_api: true\n") == {"slurmdbd", "slurm-jwt"}
    assert secrets("") == {"slurmdbd"}
