"""Every GPU machine over each fabric on each distribution, through the compiler: no hole.

Each piece of software that such nodes need is one row of the table: a role's, the image's, or not
wanted. What the compiler yields is the table, and where a row is missing `validate` says what to
write instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest
from msgspec import structs

from gcluster.inventory.compile.node import NodeFacts, node_facts
from gcluster.inventory.compile.roles import node_steps
from gcluster.inventory.compile.steps import Step
from gcluster.schemas.catalog import Catalog, Machine, load_catalog
from gcluster.schemas.load import load, load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.stack import load_lock
from gcluster.schemas.stack.table import SoftwareRow
from gcluster.schemas.structure.compose import compose
from gcluster.schemas.structure.fit import fit

EXAMPLES = Path(__file__).parents[3] / "examples"
Cell: TypeAlias = tuple[Machine, str]
"""A machine type and the fabric class of a pool of it."""
CATALOG, LOCK = load_catalog(), load_lock()

SITES = {
    "aws": "{provider: aws, region: us-east-1, zone_id: use1-az4,"
    " network: {admin_cidrs: [192.0.2.0/24]}}",
    "gcp": "{provider: gcp, project: research, region: us-central1, zone: us-central1-a,"
    " network: {admin_cidrs: [192.0.2.0/24]}}",
    "azure": "{provider: azure, subscription: 00000000-0000-0000-0000-000000000000, region: eastus,"
    " network: {admin_cidrs: [192.0.2.0/24]}}",
    "oci": "{provider: oci, region: us-ashburn-1, compartment: ocid1.compartment.oc1..aaaa,"
    " tenancy: ocid1.tenancy.oc1..aaaa, network: {admin_cidrs: [192.0.2.0/24]}}",
    "bare-metal": "{provider: bare-metal, ssh: {user: ops}}",
}
SCHEDULERS = ("type: slurm", "type: kubernetes", "type: kubernetes, gpu: {driver: container}")
MANAGED = {
    "aws": "type: kubernetes, control_plane: eks",
    "gcp": "type: kubernetes, control_plane: gke",
    "azure": "type: kubernetes, control_plane: aks",
}
OWN = ("ubuntu-22.04", "ubuntu-24.04", "el-9", "debian-12", "debian-13")
"""What hosts that exist may run."""
OWN_GPUS = {
    "v100": ("nvidia", "V100", "7.0"),
    "t4": ("nvidia", "T4", "7.5"),
    "a10g": ("nvidia", "A10G", "8.6"),
    "l4": ("nvidia", "L4", "8.9"),
    "l40s": ("nvidia", "L40S", "8.9"),
    "h20": ("nvidia", "H20", "9.0"),
    "gb300": ("nvidia", "GB300", "10.3"),
    "rtx-pro-6000": ("nvidia", "RTX PRO 6000", "12.0"),
    "mi210": ("amd", "MI210", "gfx90a"),
    "mi355x": ("amd", "MI355X", "gfx950"),
}
"""GPUs of machines in catalogs of one's own."""

STEP_OF: Mapping[str, tuple[str, str]] = {
    "driver": ("nvidia_driver.install", "nvidia_driver_version"),
    "fabric_manager": ("nvidia_driver.install", "nvidia_driver_fabric_manager"),
    "imex": ("nvidia_driver.install", "nvidia_driver_imex"),
    "cuda": ("cuda.install", "cuda_version"),
    "nccl": ("nccl.install", "nccl_version"),
    "gdrcopy": ("gdrcopy.install", "gdrcopy_version"),
    "dcgm": ("dcgm.install", "dcgm_version"),
    "container_toolkit": ("container_toolkit.install", "container_toolkit_version"),
    "amd_container_toolkit": ("container_toolkit.install", "container_toolkit_version"),
    "rocm": ("amd_gpu.install", "amd_gpu_rocm"),
    "rccl": ("amd_gpu.install", "amd_gpu_rccl"),
    "efa": ("efa.install", "efa_version"),
    "gib": ("gib.install", "gib_version"),
    "ofed": ("ofed.install", "ofed_version"),
    "asapd": ("gib.configure", "gib_daemon"),
    "tcpx": ("gpudirect_tcpx.configure", "gpudirect_tcpx_daemon"),
    "tcpx_plugin": ("gpudirect_tcpx.configure", "gpudirect_tcpx_plugin"),
    "tcpxo": ("gpudirect_tcpx.configure", "gpudirect_tcpx_daemon"),
    "tcpxo_plugin": ("gpudirect_tcpx.configure", "gpudirect_tcpx_plugin"),
    "enroot": ("enroot_pyxis.install", "enroot_pyxis_enroot_version"),
    "pyxis": ("enroot_pyxis.install", "enroot_pyxis_pyxis_version"),
}
"""Component -> the step that installs it, and the variable with its version."""
GPU_ROLES = {step.partition(".")[0] for step, _ in STEP_OF.values()}


def _fabrics(machine: Machine) -> list[str]:
    plugin = LOCK.plugin(machine.fabric)
    if machine.fabric is None and "aws" in machine.sites:
        return [*LOCK.plugins["efa"], "ethernet"]
    if machine.fabric is None:
        return [*LOCK.plugins["ofed"], "ethernet"]
    return LOCK.plugins["ofed"] if plugin == "ofed" else [machine.fabric]


def _specs() -> Iterator[tuple[str, str, str]]:
    for provider in SITES:
        image = LOCK.node_image(provider)
        distributions = OWN if image is None else image.distributions
        managed = [MANAGED[provider]] if provider in MANAGED else []
        yield from itertools.product([provider], distributions, [*SCHEDULERS, *managed])


def _pool(machine: Machine, fabric: str, provider: str, name: str) -> str:
    placed = f', hosts: "{name}-[1-2]"' if provider == "bare-metal" else ", count: 2"
    hardware = ", cpu: {sockets: 2, cores: 56}, memory: 2000 GiB"
    own = hardware if provider == "bare-metal" and not machine.cpu.threads else ""
    return f"  {name}: {{site: here, machine: {machine.name}, fabric: {fabric}{placed}{own}}}\n"


def _cells(provider: str) -> dict[str, Cell]:
    """Return pool -> a GPU machine of the provider and one of its fabrics."""
    cells: dict[str, Cell] = {}
    for machine in CATALOG.machines.values():
        if machine.gpu is not None and not machine.simulated and provider in machine.sites:
            for fabric in _fabrics(machine):
                cells[f"p{len(cells)}"] = (machine, fabric)
    return cells


def _compiled(node: NodeFacts) -> dict[str, Step]:
    return {step.key: step for step in node_steps(node)}


def _version(row: SoftwareRow, step: Step, variable: str) -> str:
    """Return the version that a step installs of a row's component."""
    value = str(step.variables[variable])
    if row.key == "ofed":
        return value if step.variables["ofed_drivers"] == "doca" else step.variables["ofed_drivers"]
    if row.by == "gpudirect_tcpx" or row.key == "asapd":
        return value.rpartition(":v")[2]
    return value


def holes(node: NodeFacts) -> Iterator[str]:
    """Yield where a pool's table and its compiled steps are not the same."""
    table, steps = node.software.rows, _compiled(node)
    keys = [row.key for row in table]
    if len(keys) != len(set(keys)):
        yield f"two rows of one component: {keys}"
    installed = {row.key: row for row in table if row.outcome == "role"}
    for row in installed.values():
        if row.key not in STEP_OF:
            continue
        key, variable = STEP_OF[row.key]
        if key not in steps:
            yield f"{row.key} {row.version}: no step {key}"
        elif _version(row, steps[key], variable) != row.version:
            yield f"{row.key} {row.version}: {key} has {steps[key].variables[variable]}"
    rows_of = {place: [k for k, at in STEP_OF.items() if at == place] for place in STEP_OF.values()}
    for (key, variable), components in rows_of.items():
        step = steps.get(key)
        if step is None or step.variables.get("nccl_vendor") == "amd":
            continue  # RCCL is a row of the role amd_gpu
        if step.variables.get(variable) and not installed.keys() & set(components):
            yield f"{key} {step.variables[variable]}: no row"


def _text(provider: str, distribution: str, scheduler: str, cells: Mapping[str, Cell]) -> str:
    """Return a spec with a pool for each cell."""
    head = ", hosts: head" if provider == "bare-metal" else ""
    pools = "".join(_pool(m, f, provider, name) for name, (m, f) in cells.items())
    return (
        "apiVersion: gcluster/v1\nname: matrix\n"
        f"sites:\n  here: {SITES[provider]}\n"
        f"pools:\n  head: {{site: here, role: controller{head}}}\n{pools}"
        f"scheduler: {{{scheduler}}}\nsoftware: {{distribution: {distribution}}}\n"
    )


def _typed(text: str) -> ClusterSpec:
    """Return a spec whatever checks say of it: not all machines are sold in one zone."""
    document = compose(text, file="spec.yaml").document
    assert document is not None
    value = fit(ClusterSpec, document, file="spec.yaml", spoilt=frozenset()).value
    assert isinstance(value, ClusterSpec)
    return value


@pytest.mark.parametrize(("provider", "distribution", "scheduler"), list(_specs()))
def test_every_machine_over_each_fabric_has_no_hole(
    provider: str, distribution: str, scheduler: str
) -> None:
    cells = _cells(provider)
    text = _text(provider, distribution, scheduler, cells)
    spec = _typed(text)
    refused = {d.path[1]: d.hint for d in load_text(text).diagnostics if d.code == "GC622"}
    nodes = node_facts(spec, CATALOG)
    found = []
    for name, (machine, fabric) in cells.items():
        cell = f"{machine.name} over {fabric}"
        missing = nodes[name].software.missing
        found += [f"{cell}: {hole}" for hole in holes(nodes[name])]
        if bool(missing) != bool(refused.get(name)):
            found.append(f"{cell}: validate says {refused.get(name)}, the table {missing}")
    assert found == []


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_no_pool_of_an_example_has_a_hole(example: Path) -> None:
    spec = load(example).spec
    assert spec is not None
    nodes = node_facts(spec, CATALOG)
    with_gpus = [node for node in nodes.values() if node.gpu is not None]
    assert [hole for node in with_gpus for hole in holes(node)] == []
    assert [node.name for node in with_gpus if node.software.missing] == []


@pytest.mark.parametrize("name", ["oci-h100-slurm", "mi300x-rocm"])
def test_an_example_whose_gpus_are_in_no_tested_set_of_its_fabric_compiles_a_driver(
    name: str,
) -> None:
    spec = load(EXAMPLES / f"{name}.yaml").spec
    assert spec is not None
    steps = [key for node in node_facts(spec, CATALOG).values() for key in _compiled(node)]
    assert {"nvidia_driver.install", "amd_gpu.install"} & set(steps)


def _node(
    machine: str,
    *,
    site: str,
    software: str = "{distribution: ubuntu-24.04}",
    catalog: Catalog = CATALOG,
    more: str = "",
    scheduler: str = "type: slurm",
) -> NodeFacts:
    """Return what is known of a pool of two such machines."""
    hosts = ', hosts: "p[1-2]"' if site == "bare-metal" else ", count: 2"
    text = (
        f"apiVersion: gcluster/v1\nname: one\nsites:\n  here: {SITES[site]}\npools:\n"
        f"  p: {{site: here, machine: {machine}{hosts}{more}}}\n"
        f"scheduler: {{{scheduler}}}\nsoftware: {software}\n"
    )
    return node_facts(_typed(text), catalog)["p"]


def test_tcpxo_on_ubuntu_24_04_gets_its_daemon_and_nccl() -> None:
    node = _node("a3-megagpu-8g", site="gcp")
    assert {"gpudirect_tcpx.configure", "nccl.install", "nvidia_driver.install"} <= set(
        _compiled(node)
    )


def test_a4x_gets_gib_nccl_and_imex() -> None:
    steps = _compiled(_node("a4x-highgpu-4g", site="gcp"))
    assert {"gib.install", "nccl.install"} <= set(steps)
    assert steps["nvidia_driver.install"].variables["nvidia_driver_imex"] == "580"


def test_a4x_max_gets_gib_its_daemon_nccl_and_imex() -> None:
    """Google's own blueprint installs all of them: a4xmax-bm-slurm-blueprint.yaml (2026-06)."""
    steps = _compiled(_node("a4x-maxgpu-4g-metal", site="gcp"))
    assert {"gib.install", "nccl.install", "cuda.install", "dcgm.install"} <= set(steps)
    assert steps["nvidia_driver.install"].variables["nvidia_driver_imex"] == "580"
    daemon = steps["gib.configure"].variables["gib_daemon"]
    assert daemon == "us-docker.pkg.dev/gce-ai-infra/asapd-lite/asapd-lite:v0.0.8"
    assert steps["container_toolkit.install"].variables["container_toolkit_docker"] is True


@pytest.mark.parametrize("fabric", ["ethernet", "efa-v4"])
def test_gb300_of_aws_gets_driver_cuda_nccl_and_imex(fabric: str) -> None:
    node = _node("p6e-gb300.36xlarge", site="aws", more=f", fabric: {fabric}")
    steps = _compiled(node)
    assert {"nvidia_driver.install", "cuda.install", "nccl.install"} <= set(steps)
    assert str(steps["nvidia_driver.install"].variables["nvidia_driver_imex"]).startswith("595.")
    assert ("efa.install" in steps) is (fabric == "efa-v4")


def _with_gpu(name: str, base: str) -> Catalog:
    """Return the catalog with a machine of one's own, as another one but for its GPUs."""
    vendor, model, capability = OWN_GPUS[name]
    old = CATALOG.machines[base]
    assert old.gpu is not None
    gpu = structs.replace(old.gpu, vendor=vendor, model=model, compute_capability=capability)
    machine = structs.replace(old, name=name, gpu=gpu)
    return structs.replace(CATALOG, machines={**CATALOG.machines, name: machine})


@pytest.mark.parametrize("name", sorted(OWN_GPUS))
@pytest.mark.parametrize(("site", "base"), [("aws", "p5.48xlarge"), ("bare-metal", "dgx-h100")])
def test_gpus_of_a_catalog_of_one_s_own_get_a_driver(site: str, base: str, name: str) -> None:
    node = _node(name, site=site, catalog=_with_gpu(name, base))
    assert (list(holes(node)), node.software.missing) == ([], ())
    assert {"nvidia_driver.install", "amd_gpu.install"} & set(_compiled(node))


def test_volta_gets_the_proprietary_modules_that_alone_drive_it() -> None:
    steps = _compiled(_node("v100", site="aws", catalog=_with_gpu("v100", "p5.48xlarge")))
    assert steps["nvidia_driver.install"].variables["nvidia_driver_modules"] == "proprietary"
    assert steps["cuda.install"].variables["cuda_version"].startswith("12.")


@pytest.mark.parametrize("machine", ["Standard_ND96isr_H100_v5", "Standard_ND96isr_MI300X_v5"])
def test_nothing_is_installed_over_what_azure_s_image_brings(machine: str) -> None:
    node = _node(machine, site="azure")
    steps = _compiled(node)
    over = {"nvidia_driver", "cuda", "dcgm", "amd_gpu", "container_toolkit", "gdrcopy"}
    assert [
        key for key, step in steps.items() if step.role in over and step.phase == "install"
    ] == []
    assert steps["nccl.install"].variables["nccl_version"] == ""  # its tests are still built
    brought = [row for row in node.software.rows if row.outcome == "image"]
    assert all(row.by and row.source and row.date for row in brought)


def test_an_image_that_a_pool_names_brings_what_the_catalog_has() -> None:
    project = "projects/ubuntu-os-accelerator-images/global/images"
    image = f"{project}/family/ubuntu-accelerator-2404-amd64-with-nvidia-580"
    node = _node("a4-highgpu-8g", site="gcp", software="{}", more=f", image: {image}")
    assert "nvidia_driver.install" not in _compiled(node)
    assert {"cuda.install", "nccl.install", "gib.install"} <= set(_compiled(node))
    assert node.software.distribution == "ubuntu-24.04"


def test_an_image_for_other_gpus_is_no_driver_and_the_fitting_one_is_named() -> None:
    catalog = _with_gpu("v100", "Standard_ND96isr_H100_v5")
    assert [piece.image for piece in _node("v100", site="azure", catalog=catalog).software.missing]


def test_what_the_spec_has_is_preinstalled_is_checked_and_not_installed() -> None:
    node = _node(
        "dgx-h100", site="bare-metal", software="{driver: preinstalled, cuda: preinstalled}"
    )
    steps = _compiled(node)
    assert "nvidia_driver.install" not in steps
    assert steps["nvidia_driver.verify"].variables["nvidia_driver_gpus"] == 8
    assert steps["dcgm.install"].variables["dcgm_cuda_major"] == 0
    assert (list(holes(node)), node.software.missing) == ([], ())


@pytest.mark.parametrize("more", ["gpu: {driver: container}", "control_plane: eks"])
def test_no_role_installs_a_driver_that_an_operator_or_the_cloud_s_nodes_have(more: str) -> None:
    node = _node("p5.48xlarge", site="aws", scheduler=f"type: kubernetes, {more}")
    assert "nvidia_driver.install" not in _compiled(node)
    driver = next(row for row in node.software.rows if row.key == "driver")
    assert (driver.outcome, driver.by.split(".")[0]) == ("not wanted", "scheduler")
