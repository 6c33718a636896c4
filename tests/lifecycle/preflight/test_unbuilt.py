"""What this version leaves out of a spec is said, and what it can't do without is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.planning.preflight.unbuilt import unbuilt
from gcluster.schemas.load import load_text

if TYPE_CHECKING:
    from pathlib import Path

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler: {type: slurm}
"""


def _said(spec: str) -> list[tuple[str, str, int | None]]:
    loaded = load_text(spec)
    assert loaded.spec is not None, loaded.diagnostics
    return [(d.code, d.summary, d.span and d.span.line) for d in unbuilt(loaded)]


def test_nothing_is_said_about_a_spec_that_is_acted_on_in_full() -> None:
    assert _said(_SPEC) == []


def test_each_part_that_is_left_out_is_named_at_its_line() -> None:
    spec = f"{_SPEC}monitoring: {{prometheus: true}}\n".replace(
        "count: 2", "count: 2, software: {containers: none}"
    )

    assert _said(spec) == [
        ("GC951", "not built yet, so left out: monitoring", 8),
        ("GC951", "not built yet, so left out: containers of single pools", 6),
    ]


def test_nodes_that_come_and_go_are_slurm_s() -> None:
    elastic = _SPEC.replace("count: 2", "count: {min: 1, max: 4}")

    assert _said(elastic.replace("slurm", "kubernetes")) == [
        ("GC951", "not built yet, so left out: nodes that come and go under Kubernetes", 6)
    ]
    assert _said(elastic) == []


def test_nodes_that_ask_slurm_before_they_change_are_refused_under_kubernetes() -> None:
    spec = f"{_SPEC}converge: pull\n"
    loaded = load_text(spec.replace("slurm", "kubernetes"))

    (said,) = [one for one in unbuilt(loaded) if one.is_error]
    assert (said.code, said.summary) == (
        "GC950",
        "converge: pull under Kubernetes is not built yet",
    )
    assert not any(one.is_error for one in unbuilt(load_text(spec)))


def test_a_cloud_is_no_part_that_is_left_out() -> None:
    site = "{provider: aws, region: us-east-1, zone_id: use1-az4}"
    spec = _SPEC.replace("{provider: local}", site).replace("sim.h100x8", "p5.48xlarge")
    spec = spec.replace("role: controller", "role: controller, machine: m7i.4xlarge")

    assert _said(spec) == []


def test_versions_that_no_role_acts_on_are_named_and_the_others_are_not() -> None:
    spec = f"{_SPEC}software: {{mpi: '5.0', slurm: '24.11.5', distribution: debian-13}}\n"

    assert [summary for _, summary, _ in _said(spec) if "software" in summary] == [
        "not built yet, so left out: software mpi"
    ]


def test_a_part_that_is_there_often_is_told_once() -> None:
    pools = "\n".join(
        f"  p{n}: {{site: here, machine: sim.h100x8, count: 1, software: {{containers: none}}}}"
        for n in range(3)
    )
    spec = _SPEC.replace("scheduler:", f"{pools}\nscheduler:")

    assert [summary for _, summary, _ in _said(spec)] == [
        "not built yet, so left out: containers of single pools (here and in 2 more)"
    ]


@pytest.mark.parametrize(("via", "said"), [("", 1), (", via: vpn", 0)])
def test_a_tunnel_from_a_cloud_to_containers_is_left_out(via: str, said: int) -> None:
    cloud = "{provider: aws, region: us-east-1, network: {admin_cidrs: [192.0.2.0/24]}}"
    spec = _SPEC.replace(
        "{here: {provider: local}}", f"{{here: {{provider: local}}, east: {cloud}}}"
    )
    spec = spec.replace("pools:\n", "pools:\n  gate: {site: east, role: login}\n")
    spec += f"links: [{{between: [here, east]{via}}}]\n"

    left_out = "not built yet, so left out: a tunnel between a cloud and containers"
    assert [summary for _, summary, _ in _said(spec)].count(left_out) == said


def test_a_second_controller_on_shared_state_is_built() -> None:
    shared = "storage: {state: {type: nfs, mount: /srv/slurm, server: 10.0.0.9}}\n"
    spec = (_SPEC + shared).replace("role: controller", "role: controller, count: 2")
    spec = spec.replace("{type: slurm}", "{type: slurm, state_save: state, rest_api: true}")

    assert not [said for said in _said(spec) if "controller" in said[1] or "scheduler" in said[1]]


def test_what_nothing_can_run_without_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(_SPEC.replace("{type: slurm}", "{type: kubernetes}") + "converge: pull\n")
    with pytest.raises(LifecycleError) as caught:
        open_cluster(str(path))

    summary = "converge: pull under Kubernetes is not built yet"
    assert [d.summary for d in caught.value.diagnostics if d.is_error] == [summary]
    assert caught.value.diagnostics[0].code == "GC950"
