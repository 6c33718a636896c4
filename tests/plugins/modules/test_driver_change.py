"""A driver is exchanged on a complete node, with all that holds it; nothing stays half done."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_machine import Machine

NEW, OLD = "595.58.03", "580.126.16"
ASKED: dict[str, Any] = {
    "version": NEW, "gpus": 1, "mig": "disabled", "ecc": "enabled",
    "load": ["nvidia", "nvidia-uvm", "nvidia-peermem"],
    "services": ["nvidia-persistenced", "nvidia-fabricmanager"],
}  # fmt: skip
HOLDERS = {
    "nvidia": ["gdrdrv", "nvidia_fs", "nvidia_modeset", "nvidia_peermem", "nvidia_uvm"],
    "nvidia_modeset": ["nvidia_drm"],
    "nvidia_uvm": ["nvidia_fs"],
}
OUT = [
    "gdrdrv", "nvidia_fs", "nvidia_drm", "nvidia_modeset", "nvidia_peermem", "nvidia_uvm", "nvidia",
]  # fmt: skip
NVIDIA_SMI = """case "$*" in
*--query-gpu=*)
  echo "0, $(cat driver), Enabled, $(cat ecc), $(cat ecc-pending), Disabled, Disabled" ;;
*"-e 1") echo Enabled >ecc-pending ;;
*"-e 0") echo Disabled >ecc-pending ;;
*--gpu-reset) [ -e stubborn ] || cp ecc-pending ecc ;;
esac"""


@pytest.fixture
def node(machine: Machine) -> Machine:
    """Return a node with daemons and modules that hold the driver; tools write down their calls."""

    def tool(name: str, script: str) -> None:
        machine.tool(name, f'cd {machine.root}\necho "{name} $*" >>calls\n{script}')

    for module in OUT:
        machine.file(f"sys/module/{module}/version", OLD)
        machine.file(f"sys/module/{module}/holders/.keep").unlink()
    for module, users in HOLDERS.items():
        for user in users:
            (machine.root / f"sys/module/{module}/holders/{user}").symlink_to("/")
    for name, text in {"driver": OLD, "ecc": "Enabled", "ecc-pending": "Enabled"}.items():
        machine.file(name, f"{text}\n")
    for unit in ("nvidia-dcgm", "nvidia-fabricmanager", "nvidia-persistenced"):
        machine.file(f"running/{unit}")
    tool(
        "rmmod",
        f"[ -e stuck-$1 ] && echo 'in use' && exit 1\nrm -r sys/module/$1\n"
        f"[ $1 != nvidia ] || echo {NEW} >driver",
    )
    tool(
        "modprobe", "[ -e broken-$1 ] && echo 'Invalid argument' && exit 1\nmkdir -p sys/module/$1"
    )
    tool(
        "systemctl",
        "case $1 in is-active) [ -e running/$3 ] ;; stop) rm running/$2 ;; "
        "start) touch running/$2 ;; esac",
    )
    tool("nvidia-smi", NVIDIA_SMI)
    return machine


def calls(node: Machine, *tools: str) -> list[str]:
    """Return what some tools were called with, in order, without queries."""
    lines = (node.root / "calls").read_text().splitlines()
    return [line for line in lines if line.split()[0] in tools and "is-active" not in line]


def test_a_driver_is_exchanged_with_all_that_holds_it_and_everything_runs_again(
    node: Machine,
) -> None:
    result = node.call("nvidia_gpu", ASKED)

    assert (result["failed"], result["reboot"]) == (False, ""), result
    assert result["changes"] == [f"driver {NEW} instead of {OLD}"]
    units = ["nvidia-dcgm", "nvidia-fabricmanager", "nvidia-persistenced"]
    assert calls(node, "systemctl", "rmmod", "modprobe") == [
        *(f"systemctl stop {unit}" for unit in units),
        *(f"rmmod {module}" for module in OUT),
        "modprobe nvidia", "modprobe nvidia_uvm", "modprobe nvidia_peermem",
        "modprobe nvidia_modeset", "modprobe nvidia_drm", "modprobe nvidia_fs", "modprobe gdrdrv",
        *(f"systemctl start {unit}" for unit in reversed(units)),
    ]  # fmt: skip
    assert node.call("nvidia_gpu", ASKED)["changed"] is False


def test_a_module_that_stays_makes_a_reboot_due_and_the_node_is_left_as_it_was(
    node: Machine,
) -> None:
    node.file("stuck-nvidia_uvm")
    result = node.call("nvidia_gpu", ASKED)

    assert not result["failed"]
    assert result["reboot"] == "nvidia_uvm can't be taken out: in use"
    assert {path.name for path in (node.root / "sys/module").iterdir()} == set(OUT)
    assert len(list((node.root / "running").iterdir())) == 3


def test_nouveau_makes_room_and_stays_away(node: Machine) -> None:
    for module in OUT:
        (node.root / f"sys/module/{module}").rename(node.root / f"gone-{module}")
    node.file("sys/module/nouveau/version")
    node.file("driver", f"{NEW}\n")
    node.tool("nvidia-smi", f"cd {node.root}\n[ -e sys/module/nvidia ] || exit 9\n{NVIDIA_SMI}")

    result = node.call("nvidia_gpu", ASKED)

    assert (result["changes"], result["reboot"]) == ([f"driver {NEW} instead of none"], "")
    loaded = {path.name for path in (node.root / "sys/module").iterdir()}
    assert loaded == {"nvidia", "nvidia_uvm", "nvidia_peermem"}


def test_a_driver_that_does_not_load_reports_why_and_daemons_are_made_to_run(node: Machine) -> None:
    node.file("broken-nvidia")
    result = node.call("nvidia_gpu", ASKED)
    assert result["msg"] == "modprobe nvidia: Invalid argument"
    assert calls(node, "systemctl")[-1] == "systemctl start nvidia-dcgm"


def test_a_program_that_has_a_gpu_open_is_named_and_keeps_the_driver(
    node: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from running import module  # noqa: PLC0415  # next to this file

    monkeypatch.setattr(module("nvidia_gpu"), "HELD_S", 0)
    node.file("proc/4711/comm", "k8s-device-plug\n")
    (node.root / "proc/4711/fd").mkdir()
    (node.root / "proc/4711/fd/7").symlink_to("/dev/nvidia0")
    result = node.call("nvidia_gpu", ASKED)

    assert result["reboot"] == "the driver is held by k8s-device-plug (4711)"
    assert calls(node, "rmmod") == []


def test_peer_memory_is_built_again_for_the_rdma_drivers_that_run(node: Machine) -> None:
    node.file("driver", f"{NEW}\n")
    (node.root / "sys/module/nvidia_peermem").rename(node.root / "sys/gone")
    node.file("broken-nvidia_peermem")
    node.tool("uname", "echo 6.8.0-79-generic")
    node.tool(
        "dkms",
        f"echo dkms $* >>{node.root}/calls\n"
        f"[ $1 != install ] || rm {node.root}/broken-nvidia_peermem\n"
        f"[ $1 != status ] || echo 'mlnx-ofed-kernel/25.07, 6.8.0-79-generic, x86_64: installed\n"
        f"nvidia/{NEW}, 6.8.0-79-generic, x86_64: installed'",
    )
    result = node.call("nvidia_gpu", ASKED)

    assert result["changes"] == ["not loaded: nvidia-peermem"]
    built = f"-m nvidia -v {NEW} -k 6.8.0-79-generic --force"
    assert calls(node, "dkms")[1:] == [f"dkms build {built}", f"dkms install {built}"]
    assert (node.root / "sys/module/nvidia_peermem").exists()


@pytest.mark.parametrize("stubborn", [False, True])
def test_ecc_holds_after_a_reset_or_makes_a_reboot_due_once(
    node: Machine, *, stubborn: bool
) -> None:
    node.file("driver", f"{NEW}\n")
    if stubborn:
        node.file("stubborn")
    requested = ASKED | {"ecc": "disabled"}
    due = "ecc disabled on GPU 0"

    result = node.call("nvidia_gpu", requested)

    assert result["changes"] == [due]
    assert result["reboot"] == (due if stubborn else "")
    resets = [line for line in calls(node, "nvidia-smi", "systemctl") if "query" not in line]
    assert resets.index("nvidia-smi -i 0 -e 0") < resets.index("systemctl stop nvidia-persistenced")
    assert resets[-4] == "nvidia-smi --gpu-reset"
    assert node.call("nvidia_gpu", requested)["reboot"] == (due if stubborn else "")
    assert calls(node, "nvidia-smi").count("nvidia-smi -i 0 -e 0") == 1


def test_a_mode_that_a_gpu_does_not_have_can_be_off_but_not_on(node: Machine) -> None:
    node.file("driver", f"{NEW}\n")
    for name in ("ecc", "ecc-pending"):
        node.file(name, "[N/A]\n")
    assert node.call("nvidia_gpu", ASKED | {"ecc": "disabled"})["changed"] is False
    refused = node.call("nvidia_gpu", ASKED)
    assert refused["msg"] == "GPU 0 has no ECC that could be enabled"


@pytest.mark.parametrize(
    ("state", "reported", "required"),
    [
        ("Completed, Success", True, True),
        ("[N/A], [N/A]", True, False),  # an A100, with any manager of its switches
        ("In Progress, N/A", False, False),  # an NVL72 whose switch trays don't answer
        ("Completed, Insufficient resources", False, False),
    ],
)
def test_the_nvlink_fabric_is_accepted_as_gpus_report_it_without_a_fabric_manager(
    node: Machine, state: str, *, reported: bool, required: bool
) -> None:
    node.tool("nvidia-smi", f"echo '{state}'")
    for fabric, well in (("reported", reported), ("required", required), ("none", True)):
        result = node.call("nvidia_gpu", ASKED | {"fabric": fabric, "state": "verified"})
        assert ("the NVLink fabric is not ready" not in result["msg"]) is well, fabric


@pytest.mark.parametrize(
    ("policy", "enabled", "job", "own", "message"),
    [
        ("never", "", False, False, "'boot: {reboot: when-drained}' of the pool"),
        ("auto", "", False, False, ""),
        ("auto", "slurmd", False, False, "the node is in service (slurmd)"),
        ("auto", "kubelet", False, False, "the node is in service (kubelet)"),
        ("auto", "", True, False, "a job runs here"),
        ("when-drained", "slurmd", False, False, ""),
        ("when-drained", "slurmd", True, False, "a job runs here"),
        ("when-drained", "slurmd", False, True, "gcluster reboot restarts it"),
    ],
)
def test_a_node_is_restarted_only_where_the_spec_lets_it_and_nothing_runs(
    machine: Machine, policy: str, enabled: str, message: str, *, job: bool, own: bool
) -> None:
    machine.tool("systemctl", f"[ $3 = '{enabled}' ]")
    machine.tool("pgrep", "echo '10 slurmstepd: [7.batch]'" if job else "exit 1")
    requested = {"reason": "another kernel runs", "policy": policy, "own": own}

    result = machine.call("restart_allowed", requested)

    assert result["failed"] is bool(message)
    assert message in result.get("msg", "")
    assert result.get("allowed", False) is not bool(message)
    assert machine.call("restart_allowed", requested | {"reason": ""})["allowed"] is False


def test_gpus_in_use_keep_a_node_from_its_first_restart(machine: Machine) -> None:
    machine.tool("systemctl", "exit 1")
    for pid, name, device in ((7, "nvidia-persiste", "nvidia0"), (8, "python3", "kfd")):
        machine.file(f"proc/{pid}/comm", f"{name}\n")
        (machine.root / f"proc/{pid}/fd").mkdir()
        (machine.root / f"proc/{pid}/fd/3").symlink_to(f"/dev/{device}")
    result = machine.call("restart_allowed", {"reason": "no driver", "policy": "auto"})
    assert "no driver; its GPUs are used by python3 (8)" in result["msg"]


@pytest.mark.parametrize(
    ("secure", "key", "answer", "well"),
    [
        (None, "", "", True),
        (b"\x06\0\0\0\0", "", "", True),
        (b"\x06\0\0\0\1", "", "", False),
        (b"\x06\0\0\0\1", "var/lib/dkms/mok.pub", "is not enrolled", False),
        (b"\x06\0\0\0\1", "var/lib/shim-signed/mok/MOK.der", "is already enrolled", True),
    ],
)
def test_under_secure_boot_the_key_of_built_modules_must_be_enrolled(
    machine: Machine, secure: bytes | None, key: str, answer: str, *, well: bool
) -> None:
    if secure is not None:
        name = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
        machine.file(f"sys/firmware/efi/efivars/{name}").write_bytes(secure)
    if key:
        machine.file(key)
    machine.tool("mokutil", f"echo $2 {answer}")
    result = machine.call("secure_boot_check", {"what": "NVIDIA's driver", "instead": "do that"})
    assert result["failed"] is not well
    if not well:
        generates = "" if key else "dkms generate_mok; "
        named = machine.root / key if key else "/var/lib/dkms/mok.pub"
        shown = f"/{key}" if key else named
        assert f"({generates}mokutil --import {shown}; reboot" in result["msg"]
        assert result["msg"].endswith("or do that")
