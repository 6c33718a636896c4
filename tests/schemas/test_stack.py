"""The software lock as data: typed, sourced, without contradictions; and what versions mean."""

from __future__ import annotations

import itertools

import pytest

from gcluster.schemas.catalog import CatalogError, load_catalog
from gcluster.schemas.spec import Software
from gcluster.schemas.stack import Lock, TestedSet, load_lock, resolve
from gcluster.schemas.stack.lock import fits, older, parts, read_lock, release
from gcluster.schemas.stack.need import Need, need_of
from gcluster.schemas.stack.resolve import resolve_need
from gcluster.schemas.stack.rules import (
    behind,
    broken_equals,
    broken_minimums,
    window,
)

LOCK = load_lock()
SETS = {tested.name: tested for tested in LOCK.sets}
IN_OWN_CATALOGS = {"GB300"}
"""GPUs of tested sets that no machine of gcluster's own catalog has yet."""


def _need(tested: TestedSet) -> Need:
    """Return nodes that the set was tested on."""
    capability = tested.capabilities[0] if tested.capabilities else None
    gpu = tested.gpus[0] if tested.gpus else None if capability is None else "any"
    fabric = tested.fabrics[0] if tested.fabrics else None
    amd = "rocm" in tested.versions
    return Need(
        vendor=None if gpu is None else "amd" if amd else "nvidia",
        gpu=gpu,
        capability=capability,
        architecture=tested.architectures[0],
        nvswitch="fabric_manager" in tested.versions,
        nvlink_domain="imex" in tested.versions,
        fabric=fabric,
        plugin=LOCK.plugin(fabric),
        provider=next(iter(tested.providers), None),
        scheduler=tested.scheduler,
        image="an image of one's own",  # brings nothing that is known
        rdma_drivers="doca",
    )


@pytest.mark.parametrize("name", sorted(SETS))
def test_a_set_names_known_components_and_reports_where_each_part_comes_from(name: str) -> None:
    tested = SETS[name]
    assert set(tested.versions) <= {component.key for component in LOCK.components}
    assert {*tested.sources, *tested.unverified} <= set(tested.versions)
    assert tested.evidence.source
    assert tested.evidence.who


@pytest.mark.parametrize("name", sorted(SETS))
def test_a_set_breaks_no_rule_of_the_lock(name: str) -> None:
    tested = SETS[name]
    for gpu in tested.gpus or [None]:
        need = _need(tested)
        need = Need(
            **{field: getattr(need, field) for field in need.__struct_fields__} | {"gpu": gpu}
        )
        assert broken_minimums(tested.versions, need, LOCK) == ()
        assert broken_equals(tested.versions, need, LOCK) == ()


@pytest.mark.parametrize("name", sorted(SETS))
def test_what_a_set_has_written_out_resolves_to_that_set(name: str) -> None:
    tested = SETS[name]
    fields = set(Software.__struct_fields__)
    written = {key: v for key, v in tested.versions.items() if key in fields}
    software = Software(distribution=tested.distributions[0], **written)
    resolved = resolve_need(software, _need(tested), LOCK)

    assert (resolved.set, resolved.tested) == (name, True)
    of_set = [c for c in resolved.components if c.key in tested.versions]
    assert {component.origin for component in of_set} <= {"requested", "lock"}


def test_no_two_sets_have_one_name_and_every_software_field_is_a_component() -> None:
    assert len(SETS) == len(LOCK.sets)
    known = {component.key for component in LOCK.components}
    assert set(Software.__struct_fields__) - {"distribution", "containers"} <= known


def test_gpus_fabrics_and_plugins_are_those_of_the_catalog() -> None:
    catalog = load_catalog()
    models = {m.gpu.model for m in catalog.machines.values() if m.gpu is not None}
    plugins: dict[str, list[str]] = {}
    for name in catalog.fabrics:
        if (plugin := catalog.fabrics[name].plugin) is not None:
            plugins.setdefault(plugin, []).append(name)

    assert {p: sorted(f) for p, f in LOCK.plugins.items()} == {
        p: sorted(f) for p, f in plugins.items()
    }
    assert {gpu for tested in LOCK.sets for gpu in tested.gpus} <= models | IN_OWN_CATALOGS
    assert {rule.gpu for rule in LOCK.needs} <= models
    assert {fabric for tested in LOCK.sets for fabric in tested.fabrics} <= set(catalog.fabrics)


def test_the_local_set_has_the_slurm_of_its_distribution() -> None:
    assert SETS["local-debian-13"].versions["slurm"] == LOCK.slurm_package("debian-13") == "24.11.5"


def test_a_lock_with_a_mistake_reports_where_it_is() -> None:
    with pytest.raises(CatalogError) as caught:
        read_lock("apiVersion: gcluster/stack/v1\nsets: [{nam: x}]\n", file="own.yaml")
    assert any('"nam"' in found.summary for found in caught.value.diagnostics)
    assert all(found.file == "own.yaml" for found in caught.value.diagnostics)


def test_a_version_fits_its_beginning_part_by_part() -> None:
    assert fits("580", "580.126.16")
    assert fits("2.30.4", "2.30.4-1")
    assert not fits("58", "580.126.16")
    assert not fits("2.3", "2.30.4")


def test_a_version_is_older_only_where_that_is_certain() -> None:
    assert older("550", "570.133.20")
    assert older("570.124.06", "570.133.20")
    assert not older("570", "570.133.20")
    assert not older("570.133.20", "570.133.20")
    assert parts("24.11.10") > parts("24.11.5")


def test_a_release_needs_two_numbers() -> None:
    assert release("24.11.5") == "24.11"
    assert release("24") is None


def test_releases_of_slurm_are_counted_by_their_list_and_those_of_kubernetes_by_number() -> None:
    slurm, kubernetes = LOCK.skews
    assert behind(slurm, "23.02.7", "24.11") == 3
    assert behind(slurm, "25.05", "24.11.5") == -1
    assert behind(slurm, "19.05", "24.11") is None
    assert behind(kubernetes, "1.33.4", "1.36") == 3
    assert behind(kubernetes, "1", "1.36") is None


def test_slurm_reaches_back_two_releases_and_from_24_11_on_three() -> None:
    slurm = LOCK.skews[0]
    assert [window(slurm, v) for v in ("23.11", "24.05.8", "24.11", "25.05")] == [2, 2, 3, 3]


def test_the_lock_is_the_same_however_often_it_is_read() -> None:
    assert isinstance(LOCK, Lock)
    assert load_lock() is LOCK


def test_every_machine_of_the_catalog_resolves_with_every_scheduler_and_fabric() -> None:
    catalog = load_catalog()
    for name, scheduler in itertools.product(catalog.machines, ("slurm", "kubernetes", None)):
        machine = catalog.machines[name]
        for fabric in (machine.fabric, "ethernet", *catalog.fabrics):
            need = need_of(machine, fabric, LOCK, scheduler=scheduler)
            found = resolve(Software(), machine, fabric, LOCK, scheduler=scheduler)
            assert found.tested == (found.set is not None)
            if found.set is not None and need.gpu:
                tested = SETS[found.set]
                assert need.gpu in tested.gpus or need.capability in tested.capabilities
