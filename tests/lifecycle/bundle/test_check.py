"""A bundle that is damaged, forged or too small is refused, and what is wrong is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.bundle.check import check_bundle, refuse_incomplete
from gcluster.lifecycle.bundle.keys import BundleKey
from gcluster.lifecycle.bundle.requirements import needs_of
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.schemas.stack.bundle import BundleManifest, decode

Make = Callable[..., BundleManifest]
SLURMD = "apt/debian-13/pool/slurmd_2.0-1_amd64.deb"
LOCAL = Path(__file__).parents[3] / "examples/local.yaml"


def refused(bundle: Path, code: str, trusted: str | None = None) -> str:
    """Return the messages of a refused bundle."""
    with pytest.raises(LifecycleError) as error:
        check_bundle(bundle, trusted)
    assert {finding.code for finding in error.value.diagnostics} == {code}
    assert error.value.exit_code is Exit.REFUSED
    return "\n".join(finding.summary for finding in error.value.diagnostics)


def test_a_whole_bundle_passes_and_its_manifest_comes_back_as_it_was(
    make_bundle: Make, tmp_path: Path
) -> None:
    made = make_bundle()
    assert check_bundle(tmp_path / "bundle") == made == decode(made.encode())


def test_the_same_bundle_is_written_with_the_same_bytes(make_bundle: Make, tmp_path: Path) -> None:
    def content() -> dict[Path, bytes]:
        return {p: p.read_bytes() for p in (tmp_path / "bundle").rglob("*") if p.is_file()}

    make_bundle()
    before = content()
    make_bundle()
    assert content() == before


@pytest.mark.parametrize("file", [SLURMD, "files/pyxis/v1.tar.gz"])
@pytest.mark.parametrize(
    ("damage", "answer"),
    [
        (lambda p: p.unlink(), "it is missing"),
        (lambda p: p.write_bytes(p.read_bytes()[:-1]), "bytes, not"),
        (lambda p: p.write_bytes(p.read_bytes()[::-1]), "its SHA-256 is another"),
    ],
    ids=["missing", "short", "changed"],
)
def test_a_file_that_is_not_the_signed_one_is_named(
    make_bundle: Make, tmp_path: Path, file: str, damage: Callable[[Path], Any], answer: str
) -> None:
    make_bundle()
    damage(tmp_path / "bundle" / file)
    result = refused(tmp_path / "bundle", "GC938")
    assert f"{file}: " in result
    assert answer in result


def test_every_damaged_file_is_named_at_once(make_bundle: Make, tmp_path: Path) -> None:
    make_bundle()
    (tmp_path / "bundle" / SLURMD).unlink()
    (tmp_path / "bundle/files/pyxis/v1.tar.gz").unlink()
    assert len(refused(tmp_path / "bundle", "GC938").splitlines()) == 2


def test_an_index_signed_by_another_key_is_refused(
    make_bundle: Make, tmp_path: Path, other_key: BundleKey
) -> None:
    make_bundle()
    folder = tmp_path / "bundle/apt/debian-13"
    release = (folder / "Release").read_bytes()
    (folder / "InRelease").write_bytes(other_key.sign(release, detached=False))
    assert "InRelease" in refused(tmp_path / "bundle", "GC938")


def test_a_manifest_that_was_changed_is_refused(make_bundle: Make, tmp_path: Path) -> None:
    make_bundle()
    path = tmp_path / "bundle/manifest.json"
    path.write_text(path.read_text().replace('"cluster": "test"', '"cluster": "another"'))
    assert "manifest.json" in refused(tmp_path / "bundle", "GC938")


def test_a_bundle_of_a_key_that_is_not_the_trusted_one_is_refused(
    make_bundle: Make, tmp_path: Path, key: BundleKey, other_key: BundleKey
) -> None:
    make_bundle()
    answer = refused(tmp_path / "bundle", "GC956", other_key.fingerprint)
    assert key.fingerprint in answer
    assert other_key.fingerprint in answer
    assert check_bundle(tmp_path / "bundle", key.fingerprint.lower())


def test_a_folder_that_is_no_bundle_is_reported_so(tmp_path: Path) -> None:
    assert "is no bundle" in refused(tmp_path, "GC938")


def test_what_a_spec_needs_and_the_bundle_lacks_is_named_with_its_role_and_the_command(
    make_bundle: Make,
) -> None:
    spec, catalog = load(LOCAL).spec, load_catalog()
    assert spec is not None
    requested = {a for pool in needs_of(spec, catalog) for a in pool.packages}
    refuse_incomplete(make_bundle(*requested), spec, catalog, "make it")

    without = {a for a in requested if a.what != "slurmd"}
    with pytest.raises(LifecycleError) as error:
        refuse_incomplete(make_bundle(*without), spec, catalog, "make it")

    findings = error.value.diagnostics
    assert [finding.code for finding in findings] == ["GC937"]
    assert re.search(r"no slurmd for debian-13, which role slurm of pool \w+", findings[0].summary)
    assert "make it" in findings[0].hint
