"""A pool that says what its machine has to have gets the one machine type that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.schemas.load import load_text

HEAD = """apiVersion: gcluster/v1
name: demo
sites:
  east: {provider: aws, region: us-east-1, zone_id: use1-az4, ssh: {tunnel: instance-connect}}
  oci:
    provider: oci
    region: us-ashburn-1
    tenancy: ocid1.tenancy.oc1..aaaa
    compartment: ocid1.compartment.oc1..aaaa
  room: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.0.0.0/16}}
pools:
  head: {site: room, role: controller, hosts: head01}
"""


def chosen(pool: str, *, folder: Path | None = None) -> str | None:
    loaded = load_text(
        f"{HEAD}  gpu: {pool}\nscheduler: {{type: slurm}}\n", folder=folder, check=False
    )
    errors = [each.summary for each in loaded.diagnostics if each.is_error]
    assert bool(errors) is (loaded.spec is None)
    return None if loaded.spec is None else loaded.spec.pools["gpu"].machine


@pytest.mark.parametrize(
    ("site", "wanted", "machine"),
    [
        ("east", "gpu: H100, per_node: 8", "p5.48xlarge"),
        ("east", "gpu: h100, per_node: 1", "p5.4xlarge"),
        ("east", "gpu: A100, gpu_memory: 80 GB", "p4de.24xlarge"),
        ("east", "gpu: GB200, architecture: aarch64", "p6e-gb200.36xlarge"),
        ("oci", "gpu: H100, per_node: 8, fabric: rdma", "BM.GPU.H100.8"),
        ("oci", "gpu: H100, per_node: 8, fabric: roce", "BM.GPU.H100.8"),
        ("oci", "gpu: H100, per_node: 8, fabric: infiniband-ndr", None),
        ("east", "gpu: H100", None),
        ("east", "gpu: GB200, architecture: x86_64", None),
    ],
)
def test_the_one_that_fits_is_taken_and_none_of_several(
    site: str, wanted: str, machine: str | None
) -> None:
    assert chosen(f"{{site: {site}, machine: {{{wanted}}}, count: 2}}") == machine


def test_hosts_that_exist_are_not_guessed_to_be_some_machine() -> None:
    text = f"{HEAD}  gpu: {{site: room, machine: {{gpu: H200}}, hosts: gpu01}}\n"
    (found,) = load_text(f"{text}scheduler: {{type: slurm}}\n", check=False).diagnostics

    assert found.code == "GC029"
    assert "hgx-h200-8" in found.hint


OWN = """apiVersion: gcluster/catalog/v1
machines:
  - name: ours
    sites: [aws]
    cpu: {architecture: x86_64}
    gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 8}
    source: purchase order
    date: 2026-11
"""


def test_a_machine_of_ones_own_makes_another_ambiguous_and_a_fabric_distinguishes_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    pool = "{{site: east, machine: {{gpu: H100, per_node: 8{}}}, count: 1{}}}\ncatalog: [own.yaml]"

    assert chosen(pool.format("", ""), folder=tmp_path) is None
    assert chosen(pool.format(", fabric: rdma", ""), folder=tmp_path) == "p5.48xlarge"
    # The pool's own fabric is that of both types.
    assert chosen(pool.format(", fabric: rdma", ", fabric: efa-v2"), folder=tmp_path) is None


BLOCK = """  gpu:
    site: east
    machine:   # what the work needs
      gpu: H100
      per_node: 8   # of a node
    # two of them
    count: 2
  more: {site: east, machine: {gpu: H100, per_node: 8}, count: 1}
scheduler: {type: slurm}
"""


def test_what_is_kept_names_the_type_and_is_the_same_spec() -> None:
    loaded = load_text(HEAD + BLOCK, check=False)
    again = load_text(loaded.whole_text, check=False)

    assert loaded.whole_text.count("machine: p5.48xlarge") == 2
    assert "H100" not in loaded.whole_text
    assert again.diagnostics == ()
    assert loaded.spec is not None
    assert again.spec == loaded.spec
    assert again.whole_text == loaded.whole_text


def test_where_there_is_no_answer_nothing_else_is_found_of_the_machine() -> None:
    pools = f"{HEAD}  gpu: {{site: east, machine: {{gpu: H100}}, count: 2}}\n"
    found = load_text(f"{pools}scheduler: {{type: slurm}}\n").diagnostics

    about = [each for each in found if each.path[:3] == ("pools", "gpu", "machine")]
    assert [each.code for each in about] == ["GC029"]
    assert "GC103" not in {each.code for each in found}
