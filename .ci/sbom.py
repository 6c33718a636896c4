"""Writes the bill of materials of the wheel (CycloneDX 1.6): `make sbom`, into dist/.

It lists what an installation by the lock brings: each distribution of requirements/runtime.txt with
its version, the condition it is for, and the hashes of the files that the lock accepts. And what
the wheel itself carries of others: the chart library of the dashboard's page.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: *; *([^\\]+?))? *\\?$")
_HASH = re.compile(r"^ +--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> list[dict[str, Any]]:
    """Return a component for each pinned distribution of a lock."""
    found: list[dict[str, Any]] = []
    for line in lock.splitlines():
        pinned, digest = _PINNED.match(line), _HASH.match(line)
        if pinned:
            name, version, condition = pinned[1].lower(), pinned[2], pinned[3]
            purl = f"pkg:pypi/{name}@{version}"
            found.append(
                {
                    "type": "library",
                    "name": name,
                    "version": version,
                    "purl": purl,
                    "bom-ref": purl,
                    "externalReferences": [],
                    **(
                        {"properties": [{"name": "pip:marker", "value": condition}]}
                        if condition
                        else {}
                    ),
                }
            )
        elif digest:
            found[-1]["externalReferences"].append(
                {
                    "type": "distribution",
                    "url": f"https://pypi.org/project/{found[-1]['name']}/{found[-1]['version']}/",
                    "hashes": [{"alg": "SHA-256", "content": digest[1]}],
                }
            )
        elif line.strip():
            raise ValueError(f"not understood: {line}")
    return found


def carried() -> dict[str, Any]:
    """Return the component of the chart library that the wheel carries."""
    content = (ROOT / "lifecycle/status/dashboard/page/uPlot.iife.min.js").read_bytes()
    version = content.split(b"(v", 1)[1].split(b")", 1)[0].decode()
    purl = f"pkg:npm/uplot@{version}"
    return {
        "type": "library",
        "name": "uplot",
        "version": version,
        "licenses": [{"license": {"id": "MIT"}}],
        "purl": purl,
        "bom-ref": purl,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
    }


def document(project: dict[str, Any], lock: str) -> dict[str, Any]:
    """Return the bill; the same project and lock give the same bytes."""
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    parts = [*components(lock), carried()]
    serial = hashlib.sha256(f"{own}\n{lock}".encode()).hexdigest()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": "urn:uuid:"
        + "-".join(
            (serial[:8], serial[8:12], f"5{serial[13:16]}", f"8{serial[17:20]}", serial[20:32])
        ),
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
                "bom-ref": own,
            }
        },
        "components": parts,
        "dependencies": [{"ref": own, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def main() -> None:
    """Write it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    out = ROOT / "dist" / "gcluster.cdx.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(document(project, lock), indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"wrote {out.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
