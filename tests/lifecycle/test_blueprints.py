"""Published cluster definitions, said in a spec: drivers, fabric and mounts are in what compiles.

Each case names the file that it re-expresses, what its nodes must get, and which of the source's
settings the language has no word for. The specs are written by hand after the sources.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.lifecycle.planning.compile_tree import compile_tree
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.stack.pools import resolved_pools

FOLDER = Path(__file__).parents[1] / "cases" / "blueprints"
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
AT_LEAST = 20
_LIBRARIES = {"nvidia": ("driver", "cuda", "nccl"), "amd": ("rocm", "rccl")}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((FOLDER / f"{request.param}.yaml").read_text())
    return read


def test_blueprints_of_several_tools_are_there() -> None:
    sources = {
        yaml.safe_load((FOLDER / f"{n}.yaml").read_text())["source"]["repository"] for n in CASES
    }
    assert len(CASES) >= AT_LEAST
    assert len(sources) >= 7, sources  # the tools that people come from


def test_what_the_blueprint_has_is_in_what_compiles(case: dict[str, Any], tmp_path: Path) -> None:
    loaded = load_text(case["spec"], file="spec.yaml")
    assert not [found for found in loaded.diagnostics if found.is_error]
    assert loaded.spec is not None
    software = resolved_pools(loaded.spec, load_catalog())
    (tmp_path / "spec.yaml").write_text(case["spec"])
    written = compile_tree(tmp_path / "spec.yaml", tmp_path / "out")
    hosts = json.loads((tmp_path / "out" / "hosts.json").read_text())["hosts"]
    for pool, wanted in case["nodes"].items():
        assert len([host for host in hosts if host["pool"] == pool]) == wanted["count"]
        there = {row.key for row in software[pool].rows if row.outcome in {"role", "image"}}
        brought = {row.key for row in software[pool].rows if row.outcome == "not wanted"}
        needed = [*_LIBRARIES[wanted["driver"]], *([wanted["plugin"]] if wanted["plugin"] else [])]
        assert software[pool].missing == ()
        assert set(needed) <= there | brought
        if loaded.spec.scheduler.__struct_config__.tag == "slurm":
            assert set(needed) <= there
        of_pool = (tmp_path / "out" / "groups" / f"{pool}.json").read_text()
        objects = "".join(p.read_text() for p in written if "/kubernetes/storage/" in str(p))
        for mount in wanted["mounts"]:
            assert f'"{mount}"' in of_pool or mount.strip("/").split("-")[0] in objects, mount
