"""The programs of container and cloud-fabric roles, on recorded machines and forged downloads.

The scenarios under molecule/ play the same recordings on nodes; here they need none.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

ROOT = Path(__file__).parents[2]
DOUBLES = ROOT / ".config/molecule/doubles"
IMAGE = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev@sha256:"
DIGEST = "8d9e10fd589a34ab8a0aa64f7e70ad075c8f1c69bea176350f8d211367697e3d"
Asked: TypeAlias = tuple[str, list[str], Mapping[str, Any]]

TOOLKIT: Asked = (
    "container-toolkit",
    ["verify"],
    {"vendor": "nvidia", "version": "1.19.1", "gpus": 8, "docker": True, "units": []},
)
AMD: Asked = (
    "container-toolkit",
    ["verify"],
    {"vendor": "amd", "version": "1.2.0", "gpus": 8, "docker": True, "units": []},
)
EFA: Asked = ("efa-state", ["verify", "1.51.0", "32"], {})
TCPXO: Asked = (
    "tcpx-state",
    ["verify"],
    {"kind": "tcpxo", "daemon": IMAGE + DIGEST, "plugin": "p@sha256:1", "nics": 8, "topology": ""},
)
ENROOT: Asked = (
    "enroot-pyxis",
    ["verify"],
    {"enroot": "3.5.0", "runs_containers": True, "data": "/nowhere/enroot"},
)
GOOD = [
    ("container_toolkit", "good", TOOLKIT),
    ("container_toolkit", "amd", AMD),
    ("efa", "good", EFA),
    ("gpudirect_tcpx", "good", TCPXO),
]
WRONG = [
    ("container_toolkit", "gpu-missing", TOOLKIT, "containers can get 7 GPUs, not 8"),
    ("container_toolkit", "no-runtime", TOOLKIT, "Docker runs without the runtime nvidia"),
    ("container_toolkit", "old-toolkit", TOOLKIT, "the toolkit is 1.18.1, not 1.19.1"),
    ("container_toolkit", "no-library", TOOLKIT, "enroot's hook calls, doesn't answer"),
    ("efa", "interface-lost", EFA, "libfabric sees 31 EFA interfaces, not 32"),
    ("efa", "no-interface", EFA, "libfabric finds no EFA interface"),
    ("efa", "no-plugin", EFA, "NCCL would fall back to TCP"),
    ("efa", "old-module", EFA, "the kernel runs module efa none, 3.4.0g is installed"),
    ("gpudirect_tcpx", "no-windows", TCPXO, "0 device windows are mounted, not 8"),
    ("gpudirect_tcpx", "small-mtu", TCPXO, "7 NICs are up with an MTU of 8244, not 8"),
    ("gpudirect_tcpx", "other-image", TCPXO, "the receive daemon runs from"),
    ("gpudirect_tcpx", "no-daemon", TCPXO, "no receive daemon runs"),
    ("enroot_pyxis", "old-enroot", ENROOT, "enroot is 3.4.1, not 3.5.0"),
    ("enroot_pyxis", "good", ENROOT, "srun has no --container-image"),
    ("enroot_pyxis", "good", ENROOT, "users can't write in /nowhere/enroot/cache"),
]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Return the root of a node that has what installers and modules leave."""
    for path, text in {
        "opt/amazon/efa_installed_packages": "# EFA installer version: 1.51.0\n",
        "var/lib/tcpxo/lib64/libnccl-net.so": "",
        "dev/dmabuf_import_helper": "",
    }.items():
        file = tmp_path / "node" / path
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return tmp_path / "node"


def play(node: Path, role: str, case: str, asked: Asked) -> subprocess.CompletedProcess[str]:
    """Run a role's program where a case's recordings answer for the machine's tools."""
    program, arguments, wanted = asked
    tools = node.parent / "tools"
    tools.mkdir(exist_ok=True)
    recordings = ROOT / "molecule" / role / "recordings"
    text = (DOUBLES / "play-recording").read_text()
    text = text.replace('Path("/usr/local/lib/recordings")', f'Path("{recordings}")')
    text = text.replace('(RECORDINGS / "case").read_text().strip()', f'"{case}"')
    for name in ("apt-get", "pgrep", "srun"):
        (tools / name).write_text("#!/bin/sh\nexit 1\n")
        (tools / name).chmod(0o755)
    for name in ("systemctl", *(tool.name for tool in (recordings / "good").iterdir())):
        file = tools / name
        file.write_text("#!/bin/sh\n[ $1 != is-failed ]\n" if name == "systemctl" else text)
        file.chmod(0o755)
    shared = ROOT / "roles/package_sources/files/libexec"
    return subprocess.run(
        [sys.executable, str(ROOT / "roles" / role / "files/libexec" / program), *arguments],
        input=json.dumps(wanted),
        env={
            **os.environ,
            "PATH": f"{tools}:/usr/bin:/bin",
            "PYTHONPATH": str(shared),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GCLUSTER_NODE_ROOT": str(node),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("role", "case", "asked"), GOOD)
def test_a_recorded_machine_that_is_as_asked_passes(
    node: Path, role: str, case: str, asked: Asked
) -> None:
    run = play(node, role, case, asked)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(("role", "case", "asked", "told"), WRONG)
def test_verify_names_what_is_wrong_with_a_recorded_machine(
    node: Path, role: str, case: str, asked: Asked, told: str
) -> None:
    run = play(node, role, case, asked)
    assert run.returncode == 1
    assert told in run.stderr


def test_dockers_other_settings_stay_and_a_broken_file_is_told(node: Path) -> None:
    asked: Asked = ("container-toolkit", ["apply"], TOOLKIT[2])
    settings = node / "etc/docker/daemon.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"debug": true}')
    run = play(node, "container_toolkit", "good", asked)
    written = json.loads(settings.read_text())
    assert run.returncode == 0, run.stderr
    assert written["debug"] is True
    assert written["runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"
    assert play(node, "container_toolkit", "good", asked).stdout == ""

    settings.write_text("{")
    assert "is no JSON" in play(node, "container_toolkit", "good", asked).stderr


def test_the_daemons_unit_names_its_image_by_digest_and_is_written_once(node: Path) -> None:
    asked: Asked = ("tcpx-state", ["apply"], TCPXO[2])
    first = play(node, "gpudirect_tcpx", "good", asked)
    unit = (node / "etc/systemd/system/gcluster-rxdm.service").read_text()
    assert first.returncode == 0, first.stderr
    assert f"{IMAGE}{DIGEST} --num_hops=2 --num_nics=8" in unit
    assert "--pull=never" in unit
    assert play(node, "gpudirect_tcpx", "good", asked).stdout == ""


def test_an_image_that_can_not_be_fetched_changes_nothing(node: Path) -> None:
    asked: Asked = ("tcpx-state", ["apply"], TCPXO[2])
    run = play(node, "gpudirect_tcpx", "not-pulled", asked)
    assert "can't be fetched: Error response from daemon: manifest unknown" in run.stderr
    assert not (node / "etc/systemd/system/gcluster-rxdm.service").exists()


def test_a_package_of_enroot_with_another_checksum_is_not_installed(
    node: Path, tmp_path: Path
) -> None:
    package = tmp_path / "enroot_3.5.0-1_amd64.deb"
    package.write_text("not what was pinned")
    file = {"url": package.as_uri(), "checksum": "sha256:" + "0" * 64}
    wanted = {"enroot": "3.5.0", "enroot_files": [file], "pyxis": "0.20.0", "build": []}
    run = play(node, "enroot_pyxis", "good", ("enroot-pyxis", ["install"], wanted))
    assert run.returncode == 1
    assert "it was not installed" in run.stderr


@pytest.fixture
def installer(tmp_path: Path) -> dict[str, str]:
    """Return what efa-installer is asked, with an archive that a key of this run signed."""
    home, served = tmp_path / "gpg", tmp_path / "served"
    home.mkdir(mode=0o700)
    served.mkdir()
    script = tmp_path / "efa_installer.sh"
    script.write_text('echo "# EFA installer version: 1.51.0" > "$GCLUSTER_NODE_ROOT/$LIST"\n')
    archive = served / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(script, "aws-efa-installer/efa_installer.sh")

    def gpg(*arguments: str) -> str:
        argv = ["gpg", "--batch", "--homedir", str(home), "--passphrase", "", *arguments]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    gpg("--quick-generate-key", "efa@test.invalid", "ed25519", "sign", "never")
    gpg("--detach-sign", "--output", f"{archive}.sig", str(archive))
    listed = gpg("--with-colons", "--list-keys").splitlines()
    fingerprint = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))
    (served / "key.asc").write_text(gpg("--armor", "--export"))
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)
    return {
        "version": "1.51.0",
        "url": archive.as_uri(),
        "signature_url": f"{archive.as_uri()}.sig",
        "checksum": f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}",
        "key_url": (served / "key.asc").as_uri(),
        "key": "",
        "key_fingerprint": fingerprint,
    }


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"key_fingerprint": "A" * 40}, "isn't signed by AAAA"),
        ({"checksum": "sha256:" + "0" * 64}, "it was not unpacked"),
        ({"url": "file:///nowhere/a.tar.gz"}, "can't be read"),
    ],
)
def test_an_installer_that_nobody_vouches_for_is_not_run(
    node: Path, installer: dict[str, str], changed: dict[str, str], told: str
) -> None:
    listed = node / "opt/amazon/efa_installed_packages"
    listed.write_text("# EFA installer version: 1.43.2\n")
    run = play(node, "efa", "good", ("efa-installer", ["install"], installer | changed))
    assert run.returncode == 1
    assert told in run.stderr
    assert "1.43.2" in listed.read_text()


def test_an_installer_that_the_pinned_key_signed_is_run(
    node: Path, installer: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = node / "opt/amazon/efa_installed_packages"
    listed.write_text("# EFA installer version: 1.43.2\n")
    monkeypatch.setenv("LIST", "opt/amazon/efa_installed_packages")
    run = play(node, "efa", "good", ("efa-installer", ["install"], installer))
    assert "EFA installer 1.51.0 instead of 1.43.2" in run.stdout
    assert "1.51.0" in listed.read_text(), run.stderr
