"""Generic resources besides GPUs: lines as in Slurm's documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from gcluster.inventory.compile import compile_cluster
from gcluster.lifecycle.cluster.open_site import inventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.stacks.registry import provider

TEMPLATES = Path(__file__).parents[3] / "roles/slurm/templates"
CATALOG = load_catalog()
SPEC = """apiVersion: gcluster/v1
name: research
sites:
  room: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.0.0.0/16}}
pools:
  head: {site: room, role: controller, hosts: [{name: head01, address: 10.0.1.1}]}
  gpu:
    site: room
    machine: dgx-h100
    hosts: [{name: "gpu[01-02]", address: "10.0.2.[1-2]"}]
    gres:
      shard: {count: 32, flags: [all_sharing]}
      fpga: {type: u250, files: "/dev/xfpga[0-1]", cores: 0-55}
      bandwidth: {count: 40}
  cpu:
    site: room
    machine: own
    hosts: [{name: cpu01, address: 10.0.3.1}]
    gres: {bandwidth: {count: 10}}
scheduler: {type: slurm, accounts: {nlp: {}}}
software: {distribution: ubuntu-24.04}
catalog: [own.yaml]
"""
OWN = """apiVersion: gcluster/catalog/v1
machines:
  - {name: own, sites: [bare-metal], cpu: {architecture: x86_64, sockets: 2, cores: 32,
     threads_per_core: 1}, memory_gib: 256, source: purchase order, date: 2026-11}
"""


def controller(folder: Path) -> dict[str, Any]:
    (folder / "own.yaml").write_text(OWN)
    loaded = load_text(SPEC, folder=folder)
    assert loaded.spec is not None, loaded.diagnostics
    catalog = load_catalog([folder / "own.yaml"])
    planned = provider("bare-metal", catalog).planned_hosts(loaded.spec, "room")
    groups = compile_cluster(loaded.spec, inventory(loaded.spec, iter(planned)), catalog).groups
    head = next(group for group in groups if group.name == "head")
    return dict(
        next(s.variables for s in head.steps if (s.role, s.phase) == ("slurm", "configure"))
    )


def rendered(name: str, variables: dict[str, Any], *, keep: str) -> list[str]:
    text = (TEMPLATES / name).read_text()
    if name == "slurm.conf.j2":
        types = next(line for line in text.splitlines() if line.startswith("GresTypes="))
        nodes = "{% for node in slurm_nodes %}" + text.split("{% for node in slurm_nodes %}")[1]
        text = f"{types}\n" + nodes.split("{% endfor %}\n\n# A job")[0] + "{% endfor %}\n"
    environment = jinja2.Environment(  # noqa: S701  # no page of the web
        trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    written = environment.from_string(text).render(slurm_managed="", **variables)
    return [line for line in written.splitlines() if line.startswith(keep)]


def test_gres_conf_has_lines_of_what_a_pool_has_besides_gpus(tmp_path: Path) -> None:
    found = rendered("gres.conf.j2", controller(tmp_path), keep="NodeName=")

    # As gres.conf(5) has them: "Name=bandwidth ... Flags=CountOnly", "Name=shard Count=32".
    assert [line for line in found if " Name=gpu " not in line] == [
        "NodeName=cpu01 Name=bandwidth Count=10 Flags=CountOnly",
        "NodeName=gpu[01-02] Name=bandwidth Count=40 Flags=CountOnly",
        "NodeName=gpu[01-02] Name=fpga Type=u250 File=/dev/xfpga[0-1] Cores=0-55",
        "NodeName=gpu[01-02] Name=shard Count=32 Flags=all_sharing",
    ]
    assert any(" Name=gpu " in line for line in found)


def test_slurm_conf_names_the_resources_and_how_many_a_node_has(tmp_path: Path) -> None:
    variables = controller(tmp_path)

    assert rendered("slurm.conf.j2", variables, keep="GresTypes") == [
        "GresTypes=gpu,bandwidth,fpga,shard"
    ]
    words = [line.split() for line in rendered("slurm.conf.j2", variables, keep="NodeName=")]
    gres = {line[0]: next(word for word in line if word.startswith("Gres=")) for line in words}
    assert gres == {
        "NodeName=cpu01": "Gres=bandwidth:10",
        "NodeName=gpu[01-02]": "Gres=gpu:h100:8,bandwidth:40,fpga:u250:2,shard:32",
    }


def test_the_database_records_and_limits_them(tmp_path: Path) -> None:
    tres = controller(tmp_path)["slurm_accounting"]["tres"]

    assert tres == ["gres/gpu", "gres/bandwidth", "gres/fpga", "gres/shard"]
