"""Any size of a family of CPU machines is a machine type, by a rule that its data says."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.catalog.model.family import family_of
from gcluster.schemas.diagnostics import Diagnostic
from gcluster.schemas.load import load, load_text

_CATALOG = load_catalog()
_FAMILIES = sorted(_CATALOG.families)
_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites:
  east:
    {provider: aws, region: us-east-1, zone_id: use1-az4, network: {admin_cidrs: [192.0.2.0/24]}}
pools:
  head: {site: east, role: controller, machine: MACHINE, public_address: true}
  train: {site: east, machine: p5.48xlarge, count: 2}
scheduler: {type: slurm}
"""

PUBLISHED = (
    # heads, logins and CPU queues of the blueprints and tutorials that other tools publish
    "c5.xlarge", "c5.24xlarge", "c5n.18xlarge", "c6i.2xlarge", "m5.xlarge", "m5.8xlarge",
    "m5.12xlarge", "m6i.2xlarge", "m7i.2xlarge", "c7i.large", "r7i.8xlarge",
    "t2.micro", "t3.micro", "t3.xlarge", "m7g.2xlarge", "c7g.16xlarge",
    "n1-standard-8", "n2-standard-2", "n2-standard-4", "n2-standard-80", "n2-highmem-8",
    "e2-standard-8", "c2-standard-4", "c2-standard-60", "c2d-standard-112",
    "c3-standard-22", "c3d-standard-360", "n4-standard-8", "c4-standard-8", "c4a-standard-16",
    "t2d-standard-8",
    "Standard_D4s_v3", "Standard_D4s_v5", "Standard_D4as_v5", "Standard_D32s_v5", "Standard_E8s_v5",
    "Standard_F4s_v2", "Standard_HB120rs_v3", "Standard_HB176rs_v4",
    "VM.Standard.E4.Flex-8-128", "VM.Standard.E5.Flex-2-32", "VM.Standard.A1.Flex-4-24",
    "VM.Standard2.8",
)  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_machines_of_published_blueprints_are_known(name: str) -> None:
    machine = _CATALOG.machines[name]

    assert machine.name == name
    assert machine.cpu.threads
    assert machine.memory_gib
    assert machine.gpu is None


@pytest.mark.parametrize("name", _FAMILIES)
def test_every_size_of_a_family_is_found_by_its_name(name: str) -> None:
    family = _CATALOG.families[name]
    names = [each.replace("OCPUS-GB", "2-16") for each in family.names()]

    assert names
    for each in names:
        assert family_of(each) == name
        found = family.machine(each)
        assert found is not None
        assert found.memory_gib is not None, f"{each}: neither the rule nor an exception says it"


def test_the_rule_has_what_the_machines_with_own_entries_have() -> None:
    compared = 0
    for name, machine in _CATALOG.machines.items():
        family = _CATALOG.families.get(family_of(name) or "")
        if family is None:
            continue
        ruled = family.machine(name)
        assert ruled is not None, name
        compared += 1
        for key in ("memory_gib", "fabric", "markets", "quotas"):
            assert getattr(ruled, key) == getattr(machine, key), (name, key)
        assert ruled.cpu.threads == machine.cpu.threads
        assert ruled.cpu.architecture == machine.cpu.architecture
        assert [p.usd_per_hour for p in ruled.prices] == pytest.approx(
            [p.usd_per_hour for p in machine.prices], rel=1e-3
        )
    assert compared >= 10


@pytest.mark.parametrize(
    ("name", "architecture"),
    [("m7g.large", "aarch64"), ("c4a-standard-4", "aarch64"), ("Standard_D4ps_v5", "aarch64"),
     ("VM.Standard.A1.Flex-2-12", "aarch64"), ("m7i.large", "x86_64")],
)  # fmt: skip
def test_the_family_has_the_architecture(name: str, architecture: str) -> None:
    assert _CATALOG.machines[name].cpu.architecture == architecture


@pytest.mark.parametrize(
    "name",
    ["m7i.3xlarge", "n2-standard-7", "Standard_D5s_v5", "VM.Standard.E5.Flex-4-2",
     "VM.Standard.E5.Flex-4-257", "VM.Standard.E5.Flex-0-8", "m7i", "m7i.", "nonsense"],
)  # fmt: skip
def test_a_size_that_is_not_made_is_no_machine_type(name: str) -> None:
    assert name not in _CATALOG.machines
    with pytest.raises(KeyError):
        _CATALOG.machines[name]


def _errors(machine: str) -> list[Diagnostic]:
    found = load_text(_SPEC.replace("MACHINE", machine)).diagnostics
    return [diagnostic for diagnostic in found if diagnostic.is_error]


def test_a_wrong_size_is_reported_with_the_sizes_there_are() -> None:
    [found] = [
        d for d in load_text(_SPEC.replace("MACHINE", "m7i.3xlarge")).diagnostics if d.is_error
    ]

    assert found.code == "GC102"
    assert "m7i.2xlarge" in found.hint


def test_an_unknown_machine_is_reported_with_families_and_how_one_adds_ones_own() -> None:
    [found] = [
        d for d in load_text(_SPEC.replace("MACHINE", "zz9.large")).diagnostics if d.is_error
    ]

    assert found.code == "GC102"
    assert "any size of c5" in found.hint
    assert "docs/machines.md" in found.hint


def test_a_head_of_any_size_is_right_and_has_a_price() -> None:
    assert load_text(_SPEC.replace("MACHINE", "c6i.2xlarge")).spec is not None
    price = _CATALOG.machines["c6i.2xlarge"].price(region="us-east-1")
    assert price is not None
    assert price.usd_per_hour == pytest.approx(0.34)


def test_a_family_of_ones_own_is_taken(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "apiVersion: gcluster/catalog/v1\nfamilies:\n"
        "  - {name: x9i, sites: [aws], cpu: {architecture: x86_64}, sizes: {large: 2},\n"
        "     gib_per_vcpu: 16, source: order, date: 2026-11}\n"
    )
    spec = tmp_path / "cluster.yaml"
    spec.write_text("catalog: [own.yaml]\n" + _SPEC.replace("MACHINE", "x9i.large"))

    assert load(spec).spec is not None


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("c5n.4xlarge", 42), ("c5n.9xlarge", 96), ("c5n.18xlarge", 192),
        ("VM.Standard.E4.Flex-114-1760", 1760), ("VM.Standard3.Flex-56-896", 896),
    ],
)  # fmt: skip
def test_the_largest_sizes_have_the_memory_that_the_clouds_list(name: str, gib: int) -> None:
    assert _CATALOG.machines[name].memory_gib == gib
