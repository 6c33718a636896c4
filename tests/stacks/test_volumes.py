"""What a head serves lies on a disk that the cloud keeps: attached, protected, found again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.stacks.recorded_graph import Graph

from gcluster.inventory.compile.node import node_facts
from gcluster.inventory.compile.roles import node_steps
from gcluster.inventory.hosts import AFTER_APPLY, ClusterInventory
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.provider import SiteContext
from gcluster.stacks.pulumi.recording.graph import RecordedGraph
from gcluster.stacks.registry import provider

from .engine_double import Engines
from .ledger_double import RecordingLedger
from .test_file_systems import CLOUDS
from .test_taking_down import CATALOG, SESSIONS

DISK = {
    "aws": "aws:ebs/volume:Volume",
    "gcp": "gcp:compute/disk:Disk",
    "azure": "azure-native:compute:Disk",
    "oci": "oci:Core/volume:Volume",
}
DEVICE = {
    "aws": "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_",
    "gcp": "/dev/disk/by-id/google-home",
    "azure": "/dev/disk/azure/scsi1/lun0,/dev/disk/azure/data/by-lun/0",
    "oci": "/dev/oracleoci/oraclevdb",
}


def spec_of(cloud: str) -> ClusterSpec:
    site, (head, gpu), _ = CLOUDS[cloud]
    text = (
        "apiVersion: gcluster/v1\nname: demo\nscheduler: {type: slurm}\n"
        f"sites:\n  here: {{{site}}}\n"
        f"pools:\n  head: {{site: here, role: controller, machine: {head}}}\n"
        f"  train: {{site: here, machine: {gpu}, count: 2}}\n"
        "storage:\n  home: {type: nfs, mount: /home, server: head, capacity: 1 TiB}\n"
    )
    loaded = load_text(text, file="spec.yaml", check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def recorded(cloud: str) -> RecordedGraph:
    found = provider(cloud).record(spec_of(cloud), "here")
    assert found is not None
    return found


@pytest.mark.parametrize("cloud", sorted(DISK))
def test_the_head_has_a_disk_of_its_own_that_nothing_removes(cloud: str) -> None:
    made = recorded(cloud)
    graph = Graph(made)
    disk = graph.only(DISK[cloud])
    assert disk.options.protect
    assert disk.options.retain_on_delete
    size = disk.inputs.get("size") or disk.inputs.get("diskSizeGB") or disk.inputs["sizeInGbs"]
    assert int(str(size)) == 1024
    attached = [r for r in graph.needed_by(disk) if "ttach" in r.type or "Machine" in r.type]
    assert attached, "something attaches it"
    assert not [r for r in attached if r.options.protect], "and goes with the head"
    systems = made.outputs["file-systems"]
    assert isinstance(systems, dict)
    assert str(systems["home"]).startswith(DEVICE[cloud])


@pytest.mark.parametrize("cloud", sorted(SESSIONS))
def test_down_keeps_the_disk_until_it_is_named(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks = Engines()
    monkeypatch.setattr("gcluster.stacks.pulumi.engine.automation.Engine", stacks)
    context = SiteContext(
        spec=spec_of(cloud),
        site="here",
        cluster_id="0a1b2c3d",
        workdir=tmp_path,
        cache=tmp_path,
        ledger=RecordingLedger(),
        emit=lambda _: None,
        state=f"file://{tmp_path}/state",
        passphrase=lambda: "a secret",
    )
    short = DISK[cloud].rpartition(":")[2]
    SESSIONS[cloud](context, CATALOG).bring_up(0)
    assert SESSIONS[cloud](context, CATALOG).take_down() is False
    assert short in stacks.kinds()
    named = msgspec.structs.replace(context, delete_data=frozenset({"home"}))
    SESSIONS[cloud](named, CATALOG).take_down()
    assert short not in stacks.kinds()


@pytest.mark.parametrize("cloud", sorted(DISK))
def test_the_head_mounts_it_where_it_exports_from_before_it_exports(cloud: str) -> None:
    spec = spec_of(cloud)
    for storage in ({}, {"home": DEVICE[cloud]}):
        known = ClusterInventory(cluster="demo", hosts=(), storage=storage)
        facts = node_facts(spec, CATALOG, known)
        keys = [step.key for step in node_steps(facts["head"])]
        assert keys.index("disks.join") < keys.index("nfs.join")
        join = next(s for s in node_steps(facts["head"]) if s.key == "disks.join")
        (data,) = join.variables["disks_file_systems"]
        assert (data["path"], data["kind"]) == ("/home", "data")
        assert data["devices"] == (DEVICE[cloud].split(",") if storage else [AFTER_APPLY])
        assert not [s for s in node_steps(facts["train"]) if s.role == "disks"]
