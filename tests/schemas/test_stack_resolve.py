"""What `auto` resolves to, per pool and for the cluster: the set that fits, else the nearest."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec, Software
from gcluster.schemas.stack import Resolved, load_lock, resolve, resolved_pools, resolved_software
from gcluster.schemas.stack.pools import merged

LOCK, CATALOG = load_lock(), load_catalog()
_BARE = """\
apiVersion: gcluster/v1
name: research
sites: {room: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: room, role: controller, hosts: head01}
  train: {site: room, machine: hgx-h100-8, hosts: gpu01, fabric: infiniband-ndr}
  old: {site: room, machine: hgx-h100-8, hosts: old01, fabric: infiniband-ndr}
scheduler: {type: slurm}
"""
_CLOUD = """\
apiVersion: gcluster/v1
name: research
sites:
  east: {provider: aws, region: us-east-1, zone_id: use1-az4, ssh: {tunnel: ssm}}
pools:
  head: {site: east, role: controller}
  train: {site: east, machine: p5.48xlarge, count: 2}
scheduler: {type: slurm}
"""


def _spec(text: str) -> ClusterSpec:
    loaded = load_text(text)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def _resolved(machine: str, fabric: str | None = None, **written: str) -> Resolved:
    return resolve(
        msgspec.convert(written, Software),
        CATALOG.machines[machine],
        fabric,
        LOCK,
        provider="bare-metal",
        scheduler="slurm",
    )


def test_auto_takes_the_newest_set_that_was_tested_on_such_nodes() -> None:
    found = _resolved("hgx-h100-8", "infiniband-ndr")

    assert found.set == "azure-hpc-ubuntu-24.04-580"
    assert found.version("driver") == found.version("fabric_manager") == "580.173.02"
    assert found.tested


def test_auto_fits_what_is_written() -> None:
    found = _resolved("hgx-h100-8", "infiniband-ndr", driver="570")

    assert found.set == "azure-hpc-ubuntu-22.04-570"
    assert found.version("driver") == "570.133.20"
    assert found.version("cuda") == "12.8"
    assert {c.key: c.origin for c in found.components}["driver"] == "requested"


def test_the_nearest_set_differs_in_the_fewest_components() -> None:
    found = _resolved("hgx-h100-8", "infiniband-ndr", driver="570.133.20", nccl="2.28.9")

    assert found.set == "azure-hpc-ubuntu-22.04-570"
    assert not found.tested
    assert [(d.key, d.requested, d.tested) for d in found.differences] == [
        ("nccl", "2.28.9", "2.26.2-1")
    ]
    assert "differs in NCCL" in found.reason


def test_the_nearest_set_breaks_no_rule_where_another_does_not() -> None:
    assert _resolved("hgx-h100-8", "infiniband-ndr", cuda="13.9").version("driver") == "580.173.02"


def test_a_driver_between_two_sets_takes_the_one_whose_cuda_it_can_run() -> None:
    assert _resolved("hgx-h100-8", "infiniband-ndr", driver="575.57.08").version("cuda") == "12.8"


def test_the_fabric_manager_follows_a_driver_that_no_set_has() -> None:
    found = _resolved("hgx-h100-8", "infiniband-ndr", driver="575.57.08")

    assert found.version("fabric_manager") == "575.57.08"


def test_nodes_that_nothing_was_tested_on_get_what_is_written_and_what_goes_with_it() -> None:
    found = _resolved("hgx-h100-8", "infiniband-ndr", distribution="debian-12", driver="550")

    assert found.set is None
    assert {c.key: (c.version, c.origin) for c in found.components} == {
        "driver": ("550", "requested"),
        "fabric_manager": ("550", "lock"),
        "dcgm": ("4.5.1", "companion"),
        "ofed": ("inbox", "distribution"),
        "slurm": ("22.05.8", "distribution"),
    }


def test_amd_nodes_get_no_nvidia_software() -> None:
    keys = {c.key for c in _resolved("mi300x-8").components}

    assert {"rocm", "rccl"} <= keys
    assert keys.isdisjoint({"driver", "cuda", "nccl", "fabric_manager"})


def test_b200_nodes_need_the_subnet_manager_of_their_switches() -> None:
    assert _resolved("hgx-b200-8").packages == ("nvlsm",)
    assert _resolved("hgx-h100-8").packages == ()


def test_simulated_gpus_get_no_gpu_software() -> None:
    found = resolve(
        Software(), CATALOG.machines["sim.h100x8"], None, LOCK, provider="local", scheduler="slurm"
    )

    assert found.set == "local-debian-13"
    assert {c.key for c in found.components} == {"slurm", "mpi"}
    assert found.distribution == "debian-13"


def test_what_an_image_brings_is_not_queried_on_existing_hosts() -> None:
    assert _resolved("hgx-h100-8", "infiniband-ndr").version("kernel") is None
    assert _resolved("hgx-h100-8", "infiniband-ndr", kernel="6.8.0").version("kernel") == "6.8.0"


def test_a_pool_overrides_only_what_it_gives() -> None:
    both = merged(Software(driver="580", cuda="13.0"), Software(driver="570"))

    assert (both.driver, both.cuda) == ("570", "13.0")
    assert merged(Software(driver="580"), None) == Software(driver="580")


def test_pools_resolve_each_by_itself() -> None:
    spec = _spec(_BARE.replace("hosts: old01,", 'hosts: old01, software: {driver: "570"},'))

    assert resolved_software(spec, "train", CATALOG).version("driver") == "580.173.02"
    assert resolved_software(spec, "old", CATALOG).version("driver") == "570.133.20"


def test_the_controller_runs_the_slurm_of_the_nodes() -> None:
    pools = resolved_pools(_spec(_CLOUD), CATALOG)

    assert pools["head"].version("slurm") == pools["train"].version("slurm") == "25.11.8"
    assert [c.origin for c in pools["head"].components if c.key == "slurm"] == ["cluster"]


def test_the_newest_slurm_that_any_pool_requests_is_the_controllers() -> None:
    text = _BARE.replace("hosts: old01,", 'hosts: old01, software: {slurm: "24.05"},')
    text = text.replace("hosts: gpu01,", 'hosts: gpu01, software: {slurm: "24.11"},')
    pools = resolved_pools(_spec(text), CATALOG)

    assert {name: found.version("slurm") for name, found in pools.items()} == {
        "head": "24.11.7",
        "train": "24.11.7",
        "old": "24.05.7",
    }


def test_a_pool_that_the_spec_does_not_have_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        resolved_software(_spec(_CLOUD), "nowhere", CATALOG)


_VERSIONS = {
    key: sorted({v for tested in LOCK.sets if (v := tested.versions.get(key))} | {"1", "999.1"})
    for key in ("driver", "cuda", "nccl", "slurm", "fabric_manager", "efa", "rocm")
}
_WRITTEN = st.fixed_dictionaries(
    {}, optional={key: st.sampled_from(versions) for key, versions in _VERSIONS.items()}
)


@settings(deadline=None, max_examples=150)
@given(
    _WRITTEN,
    st.sampled_from(sorted(CATALOG.machines)),
    st.sampled_from([None, "infiniband-ndr", "efa-v2", "gib", "ethernet"]),
    st.sampled_from(["slurm", "kubernetes", None]),
    st.sampled_from(["auto", *sorted({d for tested in LOCK.sets for d in tested.distributions})]),
)
def test_resolving_is_deterministic_keeps_what_is_written_and_survives_serialising(
    written: dict[str, str],
    machine: str,
    fabric: str | None,
    scheduler: str | None,
    distribution: str,
) -> None:
    software = msgspec.convert({"distribution": distribution, **written}, Software)
    nodes = CATALOG.machines[machine]
    first = resolve(software, nodes, fabric, LOCK, scheduler=scheduler)  # type: ignore[arg-type]  # drawn from the words
    again = resolve(software, nodes, fabric, LOCK, scheduler=scheduler)  # type: ignore[arg-type]  # as above

    assert first == again
    assert msgspec.json.decode(msgspec.json.encode(first), type=Resolved) == first
    assert first.tested == (first.set is not None and not first.differences)
    for key, version in written.items():
        assert first.version(key) is None or first.versions[key].startswith(version)
    assert {c.version for c in first.components if c.origin == "requested"} <= set(
        first.versions.values()
    )
