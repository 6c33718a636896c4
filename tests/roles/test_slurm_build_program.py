"""The program that builds Slurm's packages on EL: dnf, rpmbuild and createrepo_c are doubles.

What the spec file makes of the options was looked at with Debian's own rpmspec on SchedMD's
slurm.spec of 25.11.7 (docs/status.md); no build ran on EL.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/slurm_packages/files/libexec/slurm-build.py"
DOUBLE = """\
#!{python}
import json, pathlib, sys
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps([name, *words]) + "\\n")
if name == "rpmbuild":
    top = words[-1].split()[1]
    made = pathlib.Path(top, "RPMS/x86_64")
    made.mkdir(parents=True)
    for package in ("slurm", "slurm-slurmd", "slurm-debuginfo"):
        (made / f"{{package}}-25.11.7-1.el9.x86_64.rpm").write_text(package)
if name == "createrepo_c":
    data = pathlib.Path(words[-1], "repodata")
    data.mkdir()
    (data / "repomd.xml").write_text("<repomd/>")
"""


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[list[str]]]:
    """Build a source that has a spec file, as on EL; give the folder and what was called."""
    log, programs = tmp_path / "calls", tmp_path / "bin"
    programs.mkdir()
    for name in ("dnf", "rpmbuild", "createrepo_c"):
        (programs / name).write_text(DOUBLE.format(python=sys.executable, log=str(log)))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    spec = tmp_path / "slurm-25.11.7/slurm.spec"
    spec.parent.mkdir()
    spec.write_text("Name: slurm\n")
    source, out = tmp_path / "slurm.tar.bz2", tmp_path / "out"
    with tarfile.open(source, "w:bz2") as archive:
        archive.add(spec.parent, arcname=spec.parent.name)
    program = PROGRAM.read_text(encoding="utf-8").replace("/etc/debian_version", "/nowhere")
    checksum = hashlib.sha256(source.read_bytes()).hexdigest()
    words = ["25.11.7", source.as_uri(), f"sha256:{checksum}", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out, [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_all_that_the_build_requests_is_installed_before_it(
    built: tuple[Path, list[list[str]]],
) -> None:
    _, calls = built
    [requested] = [call for call in calls if "builddep" in call]
    [build] = [call for call in calls if call[0] == "rpmbuild"]
    options = {build[i + 1] for i, word in enumerate(build) if word == "--with"}
    # how rpm defines `--with NAME`; slurm.spec needs hwloc-devel and pmix for these alone.
    defined = {requested[i + 1] for i, word in enumerate(requested) if word == "--define"}
    assert defined == {f"_with_{name} --with-{name}" for name in options}
    assert {"cgroupv2", "pmix", "hwloc"} <= options
    assert any(call[-1] == "pmix-devel" for call in calls[: calls.index(build)])
    assert {"--enablerepo=gcluster-epel", "--enablerepo=crb"} <= set(requested)


def test_the_packages_are_a_repository_whose_sums_come_last(
    built: tuple[Path, list[list[str]]],
) -> None:
    out, calls = built
    assert calls[-1][0] == "createrepo_c"
    sums = (out / "SHA256SUMS").read_text(encoding="utf-8")
    named = {line.split("  ")[1] for line in sums.splitlines()}
    packages = {f"{name}-25.11.7-1.el9.x86_64.rpm" for name in ("slurm", "slurm-slurmd")}
    assert named == packages | {"repodata/repomd.xml"}
