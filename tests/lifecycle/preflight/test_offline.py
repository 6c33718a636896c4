"""What spec and catalog alone show is found by `validate`, and stops `plan` first of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.planning.preflight.offline import offline_findings, refuse_unmakeable
from gcluster.schemas.load import load_text

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler: {type: slurm}
"""
_AZURE = """\
apiVersion: gcluster/v1
name: demo
sites:
  east:
    provider: azure
    subscription: 00000000-0000-0000-0000-000000000000
    region: eastus
    network: {admin_cidrs: [192.0.2.0/24]}
pools:
  head: {site: east, role: controller, machine: Standard_D8s_v5, image: mine, public_address: true}
  gpu: {site: east, machine: Standard_ND96isr_H100_v5, count: 2, placement: group-a}
scheduler: {type: slurm}
"""
_KUBERNETES = """\
apiVersion: gcluster/v1
name: demo
sites: {hall: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.20.0.0/16}}}
pools:
  head: {site: hall, role: controller, hosts: [{name: head01, address: 10.20.0.1}]}
  gpu:
    {site: hall, machine: dgx-h100, hosts: [{name: "gpu[01-02]", address: "10.20.1.[1-2]"}]}
scheduler: {type: kubernetes}
"""


def _findings(spec: str) -> list[tuple[str, str, int | None]]:
    loaded = load_text(spec)
    assert loaded.spec is not None, loaded.diagnostics
    return [(d.code, d.summary, d.span and d.span.line) for d in offline_findings(loaded)]


def test_nothing_is_reported_about_a_spec_that_is_acted_on_in_full() -> None:
    assert _findings(_SPEC) == []


def test_what_azure_does_not_make_is_reported_part_by_part_with_its_place() -> None:
    assert _findings(_AZURE) == [
        (
            "GC990",
            'pool "head": image "mine" is neither PUBLISHER:OFFER:SKU:VERSION nor an id',
            10,
        ),
        (
            "GC990",
            'placement: "group-a" is a name, and the site names no resource group that has it',
            11,
        ),
    ]


def test_what_a_cloud_does_not_make_refuses_the_cluster_as_a_wrong_spec(tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(_AZURE)
    with pytest.raises(LifecycleError) as caught:
        open_cluster(str(path))

    assert {found.code for found in caught.value.diagnostics} == {"GC990"}
    assert caught.value.exit_code is Exit.SPEC


def test_add_ons_that_was_not_pinned_are_a_warning_for_a_bundle_pins_them() -> None:
    loaded = load_text(_KUBERNETES)
    found = [each for each in offline_findings(loaded) if each.code == "GC619"]

    assert found
    assert not any(each.is_error for each in found)
    refuse_unmakeable(loaded)


def test_containers_of_this_machine_have_their_own_build_of_kubernetes() -> None:
    assert _findings(_SPEC.replace("{type: slurm}", "{type: kubernetes}")) == []


_UNKEYED = _KUBERNETES.replace("{type: kubernetes}", "{type: slurm}")
_KEY = f"software: {{sources: {{doca: {{key_fingerprint: {'A' * 40}}}}}}}\n"


def test_a_repository_that_up_would_refuse_is_reported_and_the_spec_can_vouch_for_it() -> None:
    (answer,) = _findings(_UNKEYED)
    assert answer[:2] == (
        "GC936",
        'no fingerprint is known of the key of "doca", which pool gpu needs',
    )
    assert _findings(_UNKEYED + _KEY) == []
