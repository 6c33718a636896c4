"""What the base image is made of, and what happens where it can't be built."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from gcluster.stacks.local.image import base_image


def test_the_recipe_holds_no_scheduler() -> None:
    packages = base_image.recipe().packages
    assert packages == sorted(packages)
    assert not [p for p in packages if "slurm" in p or "munge" in p or "mpi" in p]


def test_the_overlay_is_the_same_bytes_every_time_and_masks_units() -> None:
    overlay = base_image._overlay(base_image.recipe())  # noqa: SLF001  # its bytes are the law
    assert base_image._overlay(base_image.recipe()) == overlay  # noqa: SLF001
    with tarfile.open(fileobj=io.BytesIO(overlay)) as archive:
        links = {m.name: m.linkname for m in archive if m.issym()}
        assert all(m.uid == m.gid == 0 for m in archive)
        assert archive.getmember("etc/ssh/sshd_config.d/10-gcluster.conf").mode == 0o644
    assert links["etc/systemd/system/systemd-ask-password-wall.path"] == "/dev/null"


def test_no_mirror_is_named() -> None:
    command = base_image._command(base_image.recipe(), Path("o.tar"), Path("r.tar"))  # noqa: SLF001
    assert command[-2:] == ["trixie", "r.tar"]
    assert not [argument for argument in command if "://" in argument]


def test_an_image_is_named_by_the_first_sixteen_digits_of_its_key() -> None:
    assert base_image.node_reference("0123456789abcdef0123") == (
        "localhost/gcluster/node:0123456789abcdef"
    )
    assert base_image.base_reference().endswith(f":{base_image.base_digest()[:16]}")


def test_a_machine_without_mmdebstrap_is_shown_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    lacking = base_image.missing_tool()
    assert lacking is not None
    assert "mmdebstrap" in lacking.diagnostics[0].hint
