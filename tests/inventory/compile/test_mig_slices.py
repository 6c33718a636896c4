"""MIG slices under Slurm: lines as in Slurm's documentation, and what else holds of such nodes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pytest
from tests.roles.programs import load_program

from gcluster.inventory.compile import compile_cluster
from gcluster.inventory.compile.slurm import nodes as slurm_nodes
from gcluster.lifecycle.cluster.open_site import inventory
from gcluster.lifecycle.smoke.launch import Launch, launches
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.catalog.model.machine import mig_gpu, mig_profiles
from gcluster.schemas.derived.floor import allreduce_floor
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.registry import provider

ROLES = Path(__file__).parents[3] / "roles"
CATALOG = load_catalog()
MIXED = "{1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}"


def spec(slices: str = MIXED) -> ClusterSpec:
    text = f"""apiVersion: gcluster/v1
name: research
sites:
  room: {{provider: bare-metal, ssh: {{user: ops}}, network: {{cidr: 10.0.0.0/16}}}}
pools:
  head: {{site: room, role: controller, hosts: [{{name: head01, address: 10.0.1.1}}]}}
  cut:
    site: room
    machine: dgx-h100
    hosts: [{{name: "cut[01-02]", address: "10.0.2.[1-2]"}}]
    gpus: {{mig_slices: {slices}}}
  whole:
    site: room
    machine: dgx-h100
    hosts: [{{name: "gpu[01-02]", address: "10.0.3.[1-2]"}}]
scheduler:
  type: slurm
  accounts: {{nlp: {{}}}}
  partitions: {{cut: {{pools: [cut]}}, whole: {{pools: [whole], default: true}}}}
software: {{distribution: ubuntu-24.04}}
"""
    loaded = load_text(text, file="spec.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


@cache
def compiled(slices: str = MIXED) -> dict[str, dict[str, dict[str, Any]]]:
    """Return pool -> step -> its variables."""
    written = spec(slices)
    site = provider("bare-metal", CATALOG)
    hosts = inventory(written, iter(site.planned_hosts(written, "room")))
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for group in compile_cluster(written, hosts, CATALOG).groups:
        found[group.name] = {f"{s.role}.{s.phase}": dict(s.variables) for s in group.steps}
    return found


def controller(slices: str = MIXED) -> dict[str, Any]:
    """Return the variables of role slurm on controllers."""
    return compiled(slices)["head"]["slurm.configure"]


def lines(name: str, variables: dict[str, Any]) -> list[dict[str, str]]:
    """Return a file's lines with NodeName of the pool that is cut: option -> value."""
    text = (ROLES / "slurm/templates" / name).read_text()
    if name == "slurm.conf.j2":
        text = "{% for node in slurm_nodes %}" + text.split("{% for node in slurm_nodes %}")[1]
        text = text.split("{% endfor %}\n\n# A job")[0] + "{% endfor %}\n"
    written = jinja2.Environment(  # noqa: S701  # no page of the web
        trim_blocks=True, undefined=jinja2.StrictUndefined
    ).from_string(text)
    rows = written.render(slurm_managed="", **variables).splitlines()
    return [
        dict(word.split("=", 1) for word in row.split())
        for row in rows
        if row.startswith("NodeName=cut")
    ]


def test_gres_conf_has_a_line_for_each_slice_with_its_three_device_files() -> None:
    found = lines("gres.conf.j2", controller())

    assert len(found) == 8 * 4
    # As on a node that runs: "NodeName=gpu2 AutoDetect=off Name=gpu Type=nvidia_a100_1g.10gb
    # MultipleFiles=/dev/nvidia4,/dev/nvidia-caps/nvidia-cap606,/dev/nvidia-caps/nvidia-cap607
    # Cores=40-47"; the caps' numbers are behind links (roles/nvidia_driver).
    assert found[0] == {
        "NodeName": "cut[01-02]",
        "Name": "gpu",
        "Type": "3g.40gb",
        "MultipleFiles": "/dev/nvidia0,/dev/gcluster/mig/gpu0-0-instance,"
        "/dev/gcluster/mig/gpu0-0-compute",
        "Flags": "nvidia_gpu_env",
        "Cores": "0-55",
    }
    assert found[-1]["MultipleFiles"].split(",")[0] == "/dev/nvidia7"
    assert found[-1]["Cores"] == "56-111"
    files = [line["MultipleFiles"].split(",")[1] for line in found]
    assert len(set(files)) == len(files)
    assert not any("Links" in line or "File" in line for line in found)


def test_the_lines_name_the_places_that_the_node_s_program_counts() -> None:
    program = load_program(ROLES / "nvidia_driver/files/libexec/mig-slices.py", "mig_slices")
    wanted = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
    places = dict(enumerate(program.places(wanted)))

    for line in lines("gres.conf.j2", controller()):
        gpu, place = re.findall(r"gpu(\d+)-(\d+)-instance", line["MultipleFiles"])[0]
        assert line["Type"] == places[int(place)]
        assert line["MultipleFiles"].startswith(f"/dev/nvidia{gpu},")
    assert str(program.LINKS) == slurm_nodes.SLICES


def test_slurm_conf_counts_each_type_as_slurm_s_documentation_does() -> None:
    (found,) = lines("slurm.conf.j2", controller())

    # gres.html, "MIG Management": NodeName=tux[1-16] gres=gpu:a100:1,gpu:a100_3g.20gb:2
    documented = re.compile(r"gpu:[a-z0-9_.]+:\d+(,gpu:[a-z0-9_.]+:\d+)*")
    assert documented.fullmatch("gpu:a100:1,gpu:a100_3g.20gb:2")
    assert documented.fullmatch(found["Gres"])
    assert found["Gres"] == "gpu:3g.40gb:8,gpu:2g.20gb:8,gpu:1g.10gb:16"
    counted = [line["Type"] for line in lines("gres.conf.j2", controller())]
    for part in found["Gres"].split(","):
        _, profile, count = part.split(":")
        assert counted.count(profile) == int(count)


def test_accounting_counts_each_type_and_all_gpus() -> None:
    # gres.html: AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:a100_3g.20gb
    tres = controller()["slurm_accounting"]["tres"]
    assert tres == ["gres/gpu", "gres/gpu:1g.10gb", "gres/gpu:2g.20gb", "gres/gpu:3g.40gb"]


def test_a_slice_brings_its_share_of_the_processors() -> None:
    by_name = {each["name"]: each for each in controller()["slurm_partitions"]}
    assert by_name["whole"]["cpus_per_gpu"] == 224 // 8
    assert by_name["cut"]["cpus_per_gpu"] == 224 // 32


def test_nodes_are_cut_and_what_is_verified_is_true_of_slices() -> None:
    cut, whole = compiled()["cut"], compiled()["whole"]
    assert cut["nvidia_driver.join"]["nvidia_driver_mig"] == "enabled"
    slices = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
    for phase in ("join", "verify"):
        assert cut[f"nvidia_driver.{phase}"]["nvidia_driver_slices"] == slices
        assert cut[f"nvidia_driver.{phase}"]["nvidia_driver_fabric"] == "none"
        assert "nvidia_driver_slices" not in whole[f"nvidia_driver.{phase}"]
    health = cut["node_health.configure"]["node_health_gpus"]
    assert (health["count"], health["slices"], health["nvlink"]) == (8, 4, False)
    assert "slices" not in whole["node_health.configure"]["node_health_gpus"]
    assert cut["nccl.verify"]["nccl_gpus"] == 1
    assert whole["nccl.verify"]["nccl_gpus"] == 8
    assert controller()["slurm_task_prolog"].endswith("task-prolog.sh")


def gate() -> dict[str, Launch]:
    """Return partition -> its AllReduce."""
    written = spec()
    site = provider("bare-metal", CATALOG)
    hosts = tuple(h for h in site.planned_hosts(written, "room") if h.role == "compute")
    return {each.partition: each for each in launches(written, hosts, "job", CATALOG)}


def test_the_allreduce_of_slices_runs_on_processors_and_apart_from_whole_gpus() -> None:
    found = gate()
    assert (found["cut"].gpus, found["whole"].gpus) == (0, 8)
    assert set(found["cut"].nodes) == {"cut01", "cut02"}
    assert allreduce_floor(spec(), CATALOG, {"cut": 2}).reason == (
        "no floor: GPUs are cut into MIG slices, and the AllReduce runs on the processors"
    )
    assert allreduce_floor(spec(), CATALOG, {"whole": 2}).gbytes_per_s is not None


@pytest.mark.parametrize(
    ("gpu", "profile"),
    [(gpu, profile) for gpu in mig_profiles().gpus for profile in gpu.profiles],
    ids=lambda value: value if isinstance(value, str) else f"{value.model}-{value.memory_gb:g}",
)
def test_as_many_of_one_profile_fit_as_nvidia_s_own_configurations_cut(
    gpu: Any, profile: str
) -> None:
    most = gpu.profiles[profile]
    assert gpu.fits({profile: most})
    assert not gpu.fits({profile: most + 1})


BALANCED = {
    ("A100", 40): {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1},
    ("A100", 80): {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1},
    ("A30", 24): {"1g.6gb": 2, "2g.12gb": 1},
    ("H100", 80): {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1},
    ("H100", 94): {"1g.12gb": 2, "2g.24gb": 1, "3g.47gb": 1},
    ("GH200", 96): {"1g.12gb": 2, "2g.24gb": 1, "3g.48gb": 1},
    ("GH200", 144): {"1g.18gb": 2, "2g.36gb": 1, "3g.72gb": 1},
    ("H200", 141): {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1},
    ("B200", 180): {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1},
    ("GB200", 186): {"1g.23gb": 2, "2g.47gb": 1, "3g.93gb": 1},
    ("B300", 269): {"1g.34gb": 2, "2g.67gb": 1, "3g.135gb": 1},
    ("GB300", 278): {"1g.35gb": 2, "2g.70gb": 1, "3g.139gb": 1},
}
"""all-balanced of NVIDIA/mig-parted's config-default.yaml at bd7160f4, by device."""


@pytest.mark.parametrize("name", BALANCED)
def test_nvidia_s_balanced_layout_is_one_of_each_gpu(name: tuple[str, int]) -> None:
    gpu = mig_gpu(*name)
    assert gpu is not None
    assert BALANCED[name].keys() <= gpu.profiles.keys()
    assert gpu.fits(BALANCED[name])


def test_of_two_memories_the_nearer_one_counts() -> None:
    of_94, of_96 = mig_gpu("H100", 93.6), mig_gpu("H100", 96)
    assert of_94 is not None
    assert of_96 is not None
    assert ("7g.94gb" in of_94.profiles, "7g.96gb" in of_96.profiles) == (True, True)
    assert mig_gpu("L4", 22.35) is None
