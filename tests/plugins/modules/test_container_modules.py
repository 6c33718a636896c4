"""The modules of container and cloud-fabric roles, on recorded machines and forged downloads."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from recorded_machine import Machine

IMAGE = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev@sha256:"
DIGEST = "8d9e10fd589a34ab8a0aa64f7e70ad075c8f1c69bea176350f8d211367697e3d"
Requested: TypeAlias = tuple[str, dict[str, Any]]

TOOLKIT: Requested = (
    "container_toolkit",
    {"vendor": "nvidia", "version": "1.19.1", "gpus": 8, "docker": True, "units": []},
)
AMD: Requested = (
    "container_toolkit",
    {"vendor": "amd", "version": "1.2.0", "gpus": 8, "docker": True, "units": []},
)
EFA: Requested = ("efa", {"version": "1.51.0", "interfaces": 32})
TCPXO: Requested = (
    "gpudirect_tcpx",
    {"kind": "tcpxo", "daemon": IMAGE + DIGEST, "plugin": "p@sha256:1", "nics": 8, "topology": ""},
)
ENROOT: Requested = (
    "enroot",
    {"version": "3.5.0", "runs_containers": True, "data": "/nowhere/enroot"},
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
    (
        "enroot_pyxis",
        "good",
        ("enroot", ENROOT[1] | {"paths": ["/dev/infiniband"]}),
        "/dev/infiniband isn't there, and containers need it",
    ),
    ("enroot_pyxis", "good", ENROOT, "srun has no --container-image"),
    ("enroot_pyxis", "good", ENROOT, "users can't write in /nowhere/enroot/cache"),
]


@pytest.fixture
def node(machine: Machine) -> Machine:
    """Return a node that has what installers and modules leave."""
    machine.file("opt/amazon/efa_installed_packages", "# EFA installer version: 1.51.0\n")
    machine.file("var/lib/tcpxo/lib64/libnccl-net.so")
    machine.file("dev/dmabuf_import_helper")
    for name in ("apt-get", "srun"):
        machine.tool(name, "exit 1")
    return machine


def verified(node: Machine, role: str, case: str, requested: Requested) -> dict[str, Any]:
    """Return how verification ends where a case's recordings answer."""
    node.play(role, case)
    module, arguments = requested
    return node.call(module, arguments | {"state": "verified"})


@pytest.mark.parametrize(("role", "case", "requested"), GOOD)
def test_a_recorded_machine_that_is_as_wanted_passes(
    node: Machine, role: str, case: str, requested: Requested
) -> None:
    result = verified(node, role, case, requested)
    assert (result["failed"], result["changed"]) == (False, False), result


@pytest.mark.parametrize(("role", "case", "requested", "message"), WRONG)
def test_verify_names_what_is_wrong_with_a_recorded_machine(
    node: Machine, role: str, case: str, requested: Requested, message: str
) -> None:
    result = verified(node, role, case, requested)
    assert result["failed"]
    assert message in result["msg"]


def test_a_module_that_something_holds_is_not_taken_for_exchanged(node: Machine) -> None:
    node.play("efa", "held")
    node.file("sys/module/efa/version", "3.3.0g\n")
    result = node.call("efa", {"state": "present"})
    assert result["failed"]
    assert "rmmod: ERROR: Module efa is in use" in result["msg"]


def test_dockers_other_settings_stay_and_a_broken_file_is_named(node: Machine) -> None:
    node.play("container_toolkit", "good")
    settings = node.file("etc/docker/daemon.json", '{"debug": true}')
    result = node.call("container_toolkit", TOOLKIT[1], diff=True)
    written = json.loads(settings.read_text())
    assert not result["failed"], result
    assert result["diff"][0]["before"] == '{"debug": true}'
    assert written["debug"] is True
    assert written["runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"
    assert not node.call("container_toolkit", TOOLKIT[1])["changed"]

    settings.write_text("{")
    assert "is no JSON" in node.call("container_toolkit", TOOLKIT[1])["msg"]


def test_amds_unit_is_written_once_and_not_in_check_mode(node: Machine) -> None:
    node.play("container_toolkit", "amd")
    unit = node.root / "etc/systemd/system/gcluster-amd-cdi.service"
    assert node.call("container_toolkit", AMD[1], check=True)["changed"]
    assert not unit.exists()
    assert node.call("container_toolkit", AMD[1])["changed"]
    assert "amd-ctk cdi generate" in unit.read_text()
    assert not node.call("container_toolkit", AMD[1])["changed"]


def test_the_daemons_unit_names_its_image_by_digest_and_is_written_once(node: Machine) -> None:
    node.play("gpudirect_tcpx", "good")
    first = node.call(*TCPXO)
    unit = (node.root / "etc/systemd/system/gcluster-rxdm.service").read_text()
    assert not first["failed"], first
    assert f"{IMAGE}{DIGEST} --num_hops=2 --num_nics=8" in unit
    assert "--pull=never" in unit
    assert not node.call(*TCPXO)["changed"]


def test_an_image_that_can_not_be_fetched_changes_nothing(node: Machine) -> None:
    node.play("gpudirect_tcpx", "not-pulled")
    result = node.call(*TCPXO)
    assert "can't be fetched: Error response from daemon: manifest unknown" in result["msg"]
    assert not (node.root / "etc/systemd/system/gcluster-rxdm.service").exists()


def test_a_package_of_enroot_with_another_checksum_is_not_installed(
    node: Machine, tmp_path: Path
) -> None:
    package = tmp_path / "enroot_3.5.0-1_amd64.deb"
    package.write_text("not what was pinned")
    file = {"url": package.as_uri(), "checksum": "sha256:" + "0" * 64}
    requested = {
        "enroot": "3.5.0",
        "enroot_files": [file],
        "pyxis": "0.20.0",
        "pyxis_file": file,
        "task_prolog": "/usr/local/src/gcluster/spank_task_prolog.c",
    }
    result = node.call("enroot_pyxis", requested)
    assert result["failed"]
    assert "it was not installed" in result["msg"]


def test_hooks_of_enroot_and_its_folders_are_due_where_they_are_missing(
    node: Machine, tmp_path: Path
) -> None:
    data = str(tmp_path / "enroot")
    changes = node.call("enroot", {"data": data}, check=True)["changes"]
    assert changes == [f"folders in {data}", "image /usr/local/share/gcluster/gate.sqsh"]


def test_the_gates_image_is_made_once_with_folders_and_no_programs(
    node: Machine, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    node.tool("systemd-tmpfiles", "exit 0")
    node.tool("mksquashfs", f'cp -r "$1" {made}; echo made > "$2"')
    assert not node.call("enroot", {"data": str(tmp_path)})["failed"]
    assert {path.name for path in made.iterdir()} >= {"bin", "etc", "usr"}
    assert (made / "lib64").readlink() == Path("usr/lib64")
    assert (made / "etc/rc").read_text() == 'exec "$@"\n'
    assert (node.root / "usr/local/share/gcluster/gate.sqsh").read_text() == "made\n"
    again = node.call("enroot", {"data": str(tmp_path)})
    assert not any(change.startswith("image") for change in again["changes"])


@pytest.fixture
def installer(tmp_path: Path) -> dict[str, str]:
    """Return efa_installer's calls, with an archive that a key of this run signed."""
    home, served = tmp_path / "gpg", tmp_path / "served"
    home.mkdir(mode=0o700)
    served.mkdir()
    script = tmp_path / "efa_installer.sh"
    script.write_text(
        'echo "# EFA installer version: 1.51.0" > '
        '"$GCLUSTER_NODE_ROOT/opt/amazon/efa_installed_packages"\n'
    )
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
    ("changed", "message"),
    [
        ({"key_fingerprint": "A" * 40}, "isn't signed by AAAA"),
        ({"checksum": "sha256:" + "0" * 64}, "it was not unpacked"),
        ({"url": "file:///nowhere/a.tar.gz"}, "can't be read"),
    ],
)
def test_an_installer_without_a_trusted_key_or_checksum_is_not_run(
    node: Machine, installer: dict[str, str], changed: dict[str, str], message: str
) -> None:
    listed = node.file("opt/amazon/efa_installed_packages", "# EFA installer version: 1.43.2\n")
    result = node.call("efa_installer", installer | changed)
    assert result["failed"]
    assert message in result["msg"]
    assert "1.43.2" in listed.read_text()


def test_an_installer_that_the_pinned_key_signed_is_run(
    node: Machine, installer: dict[str, str]
) -> None:
    listed = node.file("opt/amazon/efa_installed_packages", "# EFA installer version: 1.43.2\n")
    due = "EFA installer 1.51.0 instead of 1.43.2"
    assert node.call("efa_installer", installer, check=True)["changes"] == [due]
    result = node.call("efa_installer", installer)
    assert result["changes"][0] == due, result
    assert "1.51.0" in listed.read_text()
