"""A provider is a folder, a type of site, catalog data and an entry of the union: nothing else.

Acme is made of just these parts (tests/cases/new_provider) over a copy of gcluster, and then the
verbs of that copy know it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gcluster
from gcluster.schemas.spec.sites import SITE_TYPES
from gcluster.stacks.registry import clouds, names

SOURCE = Path(gcluster.__path__[0])
PARTS = Path(__file__).parent.parent / "cases" / "new_provider"
REGISTER = "schemas/spec/sites/__init__.py"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gcluster that has Acme: its parts laid over a copy, and one entry in the register."""
    package = tmp_path_factory.mktemp("with-acme") / "gcluster"
    package.mkdir()
    for part in SOURCE.iterdir():
        if part.name == "schemas":
            ignored = shutil.ignore_patterns("examples", "__pycache__")
            shutil.copytree(part.resolve(), package / "schemas", ignore=ignored)
        elif part.name == "stacks":
            (package / "stacks").mkdir()
            for each in part.resolve().iterdir():
                (package / "stacks" / each.name).symlink_to(each)
        else:
            (package / part.name).symlink_to(part.resolve())
    for folder in ("schemas", "stacks"):
        shutil.copytree(PARTS / folder, package / folder, dirs_exist_ok=True)
    register = package / REGISTER
    before = register.read_text(encoding="utf-8")
    after = before.replace("Site = (\n", "Site = (\n    AcmeSite |\n", 1).replace(
        "from .aws ",
        "from .acme import AcmeSite\nfrom .aws ",
        1,
    )
    assert len(after.splitlines()) == len(before.splitlines()) + 2, "an import and an entry"
    register.write_text(after, encoding="utf-8")
    return package


class Verbs:
    """Runs verbs of the copy on a spec."""

    def __init__(self, package: Path, folder: Path) -> None:
        """Put the example's spec into a folder."""
        self._package = package
        self.spec = folder / "cluster.yaml"
        shutil.copy(PARTS / "cluster.yaml", self.spec)

    def edit_spec(self, old: str, new: str) -> None:
        """Change the spec."""
        text = self.spec.read_text(encoding="utf-8")
        assert old in text
        self.spec.write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self._package.parent),
            "XDG_DATA_HOME": str(self.spec.parent / "data"),
            "XDG_CACHE_HOME": str(self.spec.parent / "cache"),
            "NO_COLOR": "1",
        }
        main = "from gcluster.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", main, *words],
            env=environment,
            cwd=self.spec.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def codes(self) -> dict[str, str]:
        """Validate; return the summaries of what was said, by code."""
        output = json.loads(self.run("validate", "--format=json", str(self.spec)).stdout)
        return {found["code"]: found["summary"] for found in output["specs"][0]["diagnostics"]}


@pytest.fixture
def verbs(copy: Path, tmp_path: Path) -> Verbs:
    return Verbs(copy, tmp_path)


def test_its_spec_is_valid_and_its_schema_is_written(verbs: Verbs) -> None:
    assert verbs.codes() == {}
    assert '"acme"' in verbs.run("schema").stdout


def test_checks_have_its_regions_zones_machines_and_ids_from_its_data(verbs: Verbs) -> None:
    verbs.edit_spec("region: north", "region: nort")
    assert "GC122" in verbs.codes()
    verbs.edit_spec("region: nort", "region: north")
    verbs.edit_spec("hall: north-hall-1", "hall: north-hall-2")
    assert "acme.h100x8 is not offered in north-hall-2" in verbs.codes()["GC204"]
    verbs.edit_spec("hall: north-hall-2", "hall: north-hall-1")
    verbs.edit_spec("{admin_cidrs:", "{net: vpc-1, subnets: sub-1, admin_cidrs:")
    assert '"vpc-1" does not look like a net of acme' in verbs.codes()["GC318"]
    verbs.edit_spec("net: vpc-1, ", "")
    assert "subnets exist in a network that the site does not name" in verbs.codes()["GC315"]


def test_a_machine_of_another_cloud_can_not_be_had_there(verbs: Verbs) -> None:
    verbs.edit_spec("machine: acme.h100x8", "machine: p5.48xlarge")
    assert "acme" in verbs.codes()["GC104"]


def test_it_is_planned_and_priced(verbs: Verbs) -> None:
    done = verbs.run("plan", "--format=json", str(verbs.spec))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    made = [c["resource"]["name"] for c in answer["sites"][0]["changes"] if c["effect"] == "create"]
    assert made == ["head", "gpu001", "gpu002"]
    cost = json.loads(verbs.run("cost", "--format=json", str(verbs.spec)).stdout)
    rates = {pool["name"]: pool["usd_per_hour"] for pool in cost["clusters"][0]["pools"]}
    assert rates == {"head": 0.5, "gpu": 2 * 21.5}


def test_every_provider_of_the_register_is_found_by_its_name() -> None:
    assert set(names()) == set(SITE_TYPES)
    assert set(clouds()) == {name for name, kind in SITE_TYPES.items() if kind.is_cloud}
    stacks = SOURCE / "stacks"
    for name in names():
        assert (stacks / name.replace("-", "_") / "provider.py").is_file(), name
    for cloud in clouds():
        assert (SOURCE / "schemas" / "catalog" / "providers" / f"{cloud}.yaml").is_file(), cloud
