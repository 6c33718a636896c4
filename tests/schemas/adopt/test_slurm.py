"""A Slurm cluster becomes a spec that is right, and what the spec can't say is listed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.adopt.draft import Adopted, NothingToAdopt, machines_text, spec_text
from gcluster.schemas.adopt.slurm.cluster import adopt_slurm
from gcluster.schemas.adopt.slurm.output import read_slurm, record_of
from gcluster.schemas.adopt.slurm.partition import slurm_seconds
from gcluster.schemas.load import Loaded, load

CASES = Path(__file__).parent.parent.parent / "cases" / "adopt"


def adopted(name: str) -> Adopted:
    output = read_slurm([(CASES / "slurm" / name).read_text()])
    return adopt_slurm(output, name="", user="ops", origin="a test", date="2026-11-22")


def written(found: Adopted, folder: Path) -> Loaded:
    (folder / "cluster.yaml").write_text(spec_text(found, "a test"))
    if found.machines:
        (folder / "machines.yaml").write_text(machines_text(found, "a test"))
    return load(folder / "cluster.yaml")


@pytest.mark.parametrize("name", ["scontrol.txt", "slurm.conf"])
def test_the_spec_is_right(name: str, tmp_path: Path) -> None:
    output = read_slurm([(CASES / "slurm" / name).read_text()])
    found = adopt_slurm(output, name="", user="ops", origin="a test", date="2026-11-22", gpu="A100")
    for machine in found.machines:  # what the list says is missing: A100 has 40 GiB, or 80
        if machine.get("gpu"):
            machine["gpu"].setdefault("memory_gib", 40)
    loaded = written(found, tmp_path)
    assert [d for d in loaded.diagnostics if d.is_error] == []


def test_nodes_that_are_alike_become_a_pool_with_their_gpus_cores_and_memory() -> None:
    assert adopted("scontrol.txt").spec["pools"]["hop-g"] == {
        "site": "here",
        "machine": "hgx-h100-8",
        "hosts": [{"name": "hop-g[001-002]", "address": "10.4.1.[1-2]"}],
        "cpu": {"sockets": 2, "cores": 56, "threads_per_core": 2},
        "memory": "2011 GiB",
        "features": ["hbm3", "ib-ndr"],
    }


def test_partitions_keep_their_pools_default_limits_and_order() -> None:
    assert adopted("scontrol.txt").spec["scheduler"]["partitions"] == {
        "batch": {
            "pools": ["hop-g"],
            "default": True,
            "max_time": "7d",
            "default_time": "1h",
            "tier": 10,
        },
        "long": {"pools": ["hop-g"], "max_nodes": 2},
        "debug": {"pools": ["debug"], "max_time": "30m"},
    }


def test_a_controller_has_its_address_and_a_backup_is_listed() -> None:
    found = adopted("scontrol.txt")
    assert found.spec["pools"]["head"]["hosts"] == [{"name": "hop-ctl1", "address": "10.4.0.2"}]
    assert "backup controller hop-ctl2" in {each.where for each in found.not_carried}


def test_of_controllers_in_slurm_conf_the_first_line_leads_and_no_other_is_lost() -> None:
    conf = """
    ClusterName=hop
    SlurmctldHost=ctl1(10.4.0.2)
    SlurmctldHost=ctl2(10.4.0.3)
    SlurmctldHost=ctl3
    NodeName=gpu[01-04] CPUs=8 RealMemory=64000
    """
    output = read_slurm(["\n".join(line.strip() for line in conf.splitlines())])
    found = adopt_slurm(output, name="", user="ops", origin="a test", date="2026-11-22")
    assert found.spec["pools"]["head"]["hosts"] == [{"name": "ctl1", "address": "10.4.0.2"}]
    listed = {each.where for each in found.not_carried}
    assert {"backup controller ctl2", "backup controller ctl3"} <= listed


def test_a_controller_that_is_a_node_computes_and_keeps_its_partitions(tmp_path: Path) -> None:
    conf = """ClusterName=bench
SlurmctldHost=box01(10.4.0.2)
NodeName=box01 Sockets=2 CoresPerSocket=56 ThreadsPerCore=2 RealMemory=2000000
NodeName=box02 NodeAddr=10.4.0.9 CPUs=16 RealMemory=64000
PartitionName=all Nodes=box01,box02 Default=YES
"""
    output = read_slurm([conf])
    found = adopt_slurm(output, name="", user="ops", origin="a test", date="2026-11-22")
    head = found.spec["pools"]["head"]
    assert (head["role"], head["compute"]) == ("controller", True)
    assert head["hosts"] == [{"name": "box01", "address": "10.4.0.2"}]
    assert head["cpu"] == {"sockets": 2, "cores": 56, "threads_per_core": 2}
    assert found.spec["scheduler"]["partitions"]["all"]["pools"] == ["head", "all"]
    assert not [each.where for each in found.not_carried if "box01" in each.where]
    assert [d for d in written(found, tmp_path).diagnostics if d.is_error] == []


def test_what_the_spec_lacks_is_listed_with_what_to_do() -> None:
    listed = {each.where for each in adopted("scontrol.txt").not_carried}
    assert {
        "Epilog[0]=/etc/slurm/epilog.d/clean",
        "HealthCheckProgram=/usr/sbin/nhc",
        "JobSubmitPlugins=lua",
        "TopologyPlugin=topology/tree",
        "AccountingStorageType=accounting_storage/slurmdbd",
        "partition long: AllowAccounts=nlp,vision",
        "partition batch: JobDefaults=DefCpuPerGPU=24",
        "partition debug: State=DRAIN",
        "pool debug: 2 x GPU",
    } <= listed


def test_what_is_set_up_with_nothing_is_not_listed() -> None:
    listed = " ".join(each.where for each in adopted("scontrol.txt").not_carried)
    for usual in ("SelectType", "AuthType", "MpiDefault", "Prolog", "AllowGroups", "PreemptType"):
        assert usual not in listed


def test_a_machine_that_the_catalog_lacks_gets_an_entry_of_ones_own() -> None:
    machines = {each["name"]: each for each in adopted("scontrol.txt").machines}
    assert machines["hopper-2-hop-dm"]["cpu"]["sockets"] == 24
    assert machines["hopper-2-debug"]["gpu"] == {"count": 2}


def test_slurm_conf_with_ranges_defaults_and_lines_that_continue_is_read() -> None:
    spec = adopted("slurm.conf").spec
    assert spec["pools"]["train"]["hosts"] == [{"name": "gpu[001-064]", "address": "10.0.1.[1-64]"}]
    assert spec["pools"]["train"]["cpu"] == {"sockets": 2, "cores": 52, "threads_per_core": 1}
    assert spec["scheduler"]["partitions"]["train"]["max_time"] == "2d"


def test_what_users_write_about_a_node_is_no_setting_of_it() -> None:
    line = (
        "NodeName=n1 CPUTot=4 OS=Linux 5.15 #1 SMP Tue RealMemory=100 State=DOWN "
        "Reason=bad RealMemory=7 CPUTot=9"
    )
    record = record_of(line)
    assert (record["CPUTot"], record["RealMemory"], "Reason" in record) == ("4", "100", False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800), ("1:30", 90), ("02:00:00", 7200), ("7-00:00:00", 604_800),
        ("1-12", 129_600), ("2-0", 172_800), ("never", 0), ("", 0), ("1-2-3", 0),
    ],
)  # fmt: skip
def test_slurms_times_are_read(text: str, seconds: int) -> None:
    assert slurm_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no node"),
        ("SlurmctldHost[0] = head\n", "no node"),
        ("NodeName=n1 CPUTot=4\n", "SlurmctldHost"),
    ],
)
def test_without_nodes_or_a_controller_there_is_nothing_to_adopt(text: str, word: str) -> None:
    with pytest.raises(NothingToAdopt, match=word):
        adopt_slurm(read_slurm([text]), name="", user="ops", origin="x", date="2026-11-22")


@given(st.text(max_size=300))
def test_no_text_ends_the_reading(text: str) -> None:
    read_slurm([text, f"NodeName={text}", f"PartitionName={text}"])


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "gpus": st.sampled_from(["", "gpu:h100:8", "gpu:nvidia_a100_80gb:4", "gpu:2"]),
                "cores": st.integers(1, 64),
                "partitions": st.sampled_from(["", "a", "b", "a,b"]),
            }
        ),
        min_size=1,
        max_size=12,
    )
)
def test_every_node_is_in_one_pool_whatever_the_nodes_are(nodes: list[dict[str, object]]) -> None:
    lines = [
        f"NodeName=n{number:02d} CoresPerSocket={node['cores']} Sockets=2 ThreadsPerCore=1 "
        f"RealMemory=64000 Gres={node['gpus'] or '(null)'} Partitions={node['partitions']}"
        for number, node in enumerate(nodes)
    ]
    text = "\n".join(["SlurmctldHost[0] = head", *lines, "PartitionName=a", "PartitionName=b"])
    found = adopt_slurm(read_slurm([text]), name="x", user="u", origin="x", date="2026-11-22")
    from gcluster.schemas.derived.hostlist import expand  # noqa: PLC0415  # here alone

    hosts = [
        h for name, p in found.spec["pools"].items() if name != "head" for h in expand(p["hosts"])
    ]
    assert sorted(hosts) == [f"n{number:02d}" for number in range(len(nodes))]


def test_no_name_or_comment_breaks_out_of_the_yaml() -> None:
    text = (
        "SlurmctldHost[0] = head\nClusterName = a: {b}\n"
        "NodeName=n1 CPUTot=4 ActiveFeatures=x\x1b[31m\nPartitionName=p\\#q Nodes=n1 # all\n"
    )
    found = adopt_slurm(read_slurm([text]), name="", user="u", origin="x", date="2026-11-22")
    data = yaml.safe_load(spec_text(found, "evil\norigin: 1"))
    assert "origin" not in data
    assert data["scheduler"]["partitions"] == {"p-q": {"pools": ["p-q"]}}


def test_settings_weights_and_words_of_partitions_and_nodes_are_carried(tmp_path: Path) -> None:
    text = (CASES / "slurm" / "slurm.conf").read_text() + (
        "MaxArraySize=10001\nLaunchParameters=use_interactive_step\nMessageTimeout=60\n"
        "SchedulerParameters=bf_max_job_test=500,defer\nPriorityType=priority/multifactor\n"
        "PriorityWeightAge=500\nPriorityWeightQOS=2000\nSlurmctldLogFile=/var/log/slurm/ctld.log\n"
        "DefMemPerCPU=4000\n"
        "NodeName=fat[1-2] CPUs=64 RealMemory=512000 Feature=fat,ib Weight=50\n"
        "PartitionName=GPU_Long Nodes=fat[1-2] OverSubscribe=EXCLUSIVE Hidden=YES\n"
    )
    output = read_slurm([text])
    found = adopt_slurm(output, name="", user="ops", origin="a test", date="2026-11-22")
    scheduler = found.spec["scheduler"]
    assert scheduler["priority"] == {"age": 500, "qos": 2000}
    assert scheduler["settings"]["slurm"] == {
        "MaxArraySize": "10001",
        "LaunchParameters": "use_interactive_step",
        "MessageTimeout": "60",
        "SchedulerParameters": "bf_max_job_test=500,defer",
        "DefMemPerCPU": "4000",
    }
    assert scheduler["partitions"]["GPU_Long"] == {
        "pools": ["fat"],
        "max_time": "2d",
        "exclusive": True,
        "hidden": True,
    }
    assert [d for d in written(found, tmp_path).diagnostics if d.is_error] == []


def test_of_what_scontrol_prints_only_what_was_set_is_carried() -> None:
    text = (CASES / "slurm" / "scontrol.txt").read_text()
    printed = "MaxArraySize = 1001\nKillWait = 90 sec\nSlurmdDebug = info\nMinJobAge = 300 sec\n"
    config = read_slurm([text, printed])
    found = adopt_slurm(config, name="", user="ops", origin="a test", date="2026-11-22")
    assert found.spec["scheduler"]["settings"] == {"slurm": {"KillWait": "90"}}


def test_generic_resources_besides_gpus_are_carried_or_listed() -> None:
    text = """SlurmctldHost=head01
NodeName=gpu[01-02] Gres=gpu:h100:8,shard:32,bandwidth:lustre:4K,fpga:2,lic:no_consume:4,mps:9
PartitionName=main Nodes=ALL Default=YES
"""
    found = adopt_slurm(
        read_slurm([text]), name="lab", user="ops", origin="a test", date="2026-11-28"
    )

    (pool,) = (pool for name, pool in found.spec["pools"].items() if name != "head")
    assert pool["gres"] == {
        "bandwidth": {"count": 4096, "type": "lustre"},
        "fpga": {"count": 2},
        "shard": {"count": 32},
    }
    listed = spec_text(found, "a test")
    assert "lic:no_consume:4" in listed
    assert "mps:9" in listed
