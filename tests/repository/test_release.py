"""What a release is made of: its bill of materials, and a workflow that signs and holds no key."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def bill(root: Path) -> dict[str, Any]:
    """Return the bill of materials of the lock."""
    parts = runpy.run_path(str(root / ".ci" / "sbom.py"))
    project = {"name": "gcluster", "version": "1.2.3", "license": "Apache-2.0"}
    lock = (root / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(json.dumps(parts["document"](project, lock)))
    return found


@pytest.fixture
def jobs(root: Path) -> dict[str, Any]:
    """Return the jobs of the workflow."""
    text = (root / ".github/workflows/release.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)["jobs"]
    return found


def test_the_bill_names_every_pinned_distribution_with_its_hashes(
    bill: dict[str, Any], root: Path
) -> None:
    lock = (root / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock, re.MULTILINE)
    *locked, carried = bill["components"]
    assert carried["purl"] == "pkg:npm/uplot@1.6.32"
    assert [(c["name"], c["version"]) for c in locked] == [
        (name.lower(), version) for name, version in pinned
    ]
    hashes = [r["hashes"][0]["content"] for c in locked for r in c["externalReferences"]]
    assert hashes == re.findall(r"--hash=sha256:([0-9a-f]{64})", lock)
    assert all(component["externalReferences"] for component in locked)


def test_the_bill_has_the_form_that_its_schema_requests(bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(
        r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        bill["serialNumber"],
    )
    refs = [component["bom-ref"] for component in bill["components"]]
    assert len(refs) == len(set(refs))
    assert bill["dependencies"][0]["dependsOn"] == refs


def test_what_is_published_was_tested_signed_and_built_once(jobs: dict[str, Any]) -> None:
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "build": None,
        "sign": "build",
        "publish": "sign",
        "release": "publish",
    }
    runs = " ".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert runs.index("bootstrap test") < runs.index("make build sbom")
    assert [name for name, job in jobs.items() if "make build" in str(job)] == ["build"]
    uses = [step["uses"].partition("@")[0] for step in jobs["sign"]["steps"]]
    assert {"actions/attest-build-provenance", "actions/attest-sbom"} <= set(uses)


def test_no_job_has_more_rights_than_it_needs_and_no_key_is_kept(
    jobs: dict[str, Any], root: Path
) -> None:
    text = (root / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["permissions"] == {}
    assert "secrets." not in text
    writes = {
        name: {right for right, grant in job["permissions"].items() if grant == "write"}
        for name, job in jobs.items()
    }
    assert writes == {
        "build": set(),
        "sign": {"id-token", "attestations"},
        "publish": {"id-token"},
        "release": {"contents"},
    }


def test_actions_of_the_release_are_pinned_to_commits(jobs: dict[str, Any]) -> None:
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used
    loose = [name for name in used if not re.search(r"@[0-9a-f]{40}$", name)]
    assert loose == [], "an action's tag can be moved, and these sign and publish"
