"""Scratch on local disks: on the nodes that work, by their cloud's rule, and used by containers."""

from __future__ import annotations

from typing import get_args

import pytest

from gcluster.inventory.compile.node import node_facts
from gcluster.inventory.compile.roles import compiled_storage, node_steps
from gcluster.inventory.compile.steps import Step
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec.storage import Storage

from .test_managed_lustre import CLOUDS

CATALOG = load_catalog()
MODELS = {
    "aws": ["Amazon EC2 NVMe Instance Storage"],
    "gcp": ["nvme_card", "nvme_card[0-9]", "nvme_card[0-9][0-9]"],
    "azure": ["Microsoft NVMe Direct Disk", "Microsoft NVMe Direct Disk v2"],
    "oci": [],
}


def steps(cloud: str, storage: str, more: str = "") -> dict[str, dict[str, Step]]:
    here = CLOUDS[cloud]
    site = ", ".join(f'{key}: "{value}"' for key, value in here["site"].items())
    text = (
        "apiVersion: gcluster/v1\nname: demo\n"
        f"sites:\n  here: {{provider: {cloud}, {site}}}\n"
        f"pools:\n  head: {{site: here, role: controller, machine: {here['head']}}}\n"
        f"  gpu: {{site: here, machine: {here['gpu']}, count: 2}}\n"
        f"storage:\n{storage}scheduler: {{type: slurm}}\n{more}"
    )
    loaded = load_text(text, check=False)
    assert loaded.spec is not None, loaded.diagnostics
    facts = node_facts(loaded.spec, CATALOG)
    return {pool: {s.key: s for s in node_steps(node)} for pool, node in facts.items()}


def test_every_type_of_storage_of_the_language_is_mounted_by_some_role() -> None:
    kinds = {str(each.__struct_config__.tag) for each in get_args(Storage)}
    assert kinds == compiled_storage()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_scratch_is_on_the_local_disks_of_the_nodes_that_work(cloud: str) -> None:
    found = steps(cloud, "  fast: {type: local-nvme, mount: /scratch, format: true}\n")
    assert not [key for key in found["head"] if key.startswith("disks.")]
    (scratch,) = found["gpu"]["disks.join"].variables["disks_file_systems"]
    assert (scratch["path"], scratch["models"]) == ("/scratch", MODELS[cloud])
    assert (scratch["label"], scratch["format"]) == ("gc-fast", True)


def test_disks_that_are_named_are_taken_and_long_names_get_short_labels() -> None:
    named = "/dev/disk/by-id/nvme-a"
    spec = (
        f"  everything-local: {{type: local-nvme, mount: /s, format: true, devices: [{named}]}}\n"
    )
    (scratch,) = steps("oci", spec)["gpu"]["disks.join"].variables["disks_file_systems"]
    assert scratch["devices"] == [named]
    assert len(scratch["label"]) <= 12


def test_containers_are_unpacked_on_scratch_where_there_is_some() -> None:
    asks = "software: {containers: pyxis}\n"
    scratch = "  fast: {type: local-nvme, mount: /scratch, format: true}\n"
    with_it = steps("aws", scratch, asks)["gpu"]
    assert with_it["enroot_pyxis.configure"].variables["enroot_pyxis_data"] == "/scratch/enroot"
    home = "  home: {type: nfs, mount: /home, server: head}\n"
    without = steps("aws", home, asks)["gpu"]
    assert "enroot_pyxis_data" not in without["enroot_pyxis.configure"].variables
