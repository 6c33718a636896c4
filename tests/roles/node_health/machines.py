"""Fake nodes of published machine layouts (tests/cases/machines): /sys, /proc and their tools.

Device trees are as the kernel has them: the classes' entries are links to devices below their PCI
bridges. What a node must have comes from the compiler, as for a real one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import recorded
import yaml
from tests.inventory.compile.golden import inventory_of
from tests.shell_double import write_double

from gcluster.inventory.compile import compile_cluster
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load

CASES = Path(__file__).parents[2] / "cases"
FOLDER = CASES / "machines"
LAYOUTS = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "faults")
FAULTS: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "faults.yaml").read_text())["faults"]
_COUNTERS = ("symbol_error", "link_downed", "port_rcv_errors")
_BARE_METAL = {
    "apiVersion": "gcluster/v1",
    "name": "hall",
    "sites": {
        "hall": {
            "provider": "bare-metal", "ssh": {"user": "ops"}, "network": {"cidr": "10.0.0.0/16"},
        }
    },
    "pools": {"head": {"site": "hall", "role": "controller", "hosts": "head01"}},
    "scheduler": {"type": "slurm"},
}  # fmt: skip


@cache
def layout(name: str) -> dict[str, Any]:
    """Return a layout."""
    read: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return read


def expected(name: str, folder: Path, *, board: bool = False) -> dict[str, Any]:
    """Return what the compiler says a node of this machine must have: its node-health.json.

    Args:
        name: a layout.
        folder: to write a spec into.
        board: it is the catalog's board, and the pool says the rest (`board` of the layout); else
            the catalog's machine, or the layout's own.
    """
    known = layout(name)
    if board:
        known = {key: known[key] for key in known if key != "own"} | known["board"]
    machine = known["own"]["name"] if "own" in known else known["machine"]
    spec = CASES / f"stacks/{known.get('spec')}/specs/{machine}.yaml"
    if not spec.exists():
        catalog = {"apiVersion": "gcluster/catalog/v1", "machines": [known.get("own")]}
        own = {"catalog": ["machines.yaml"]} if "own" in known else {}
        (folder / "machines.yaml").write_text(yaml.safe_dump(catalog))
        spec = folder / "cluster.yaml"
        gpu = {"site": "hall", "hosts": "gpu[001-002]"}
        gpu |= known["board"] if board else {"machine": machine}
        pools = _BARE_METAL["pools"] | {"gpu": gpu}  # type: ignore[operator]  # a dict
        spec.write_text(yaml.safe_dump(_BARE_METAL | own | {"pools": pools}))
    loaded = load(spec)
    assert loaded.spec is not None, [found.summary for found in loaded.diagnostics]
    cluster = compile_cluster(loaded.spec, inventory_of(loaded.spec), load_catalog(loaded.catalogs))
    pools = [pool for pool, answer in loaded.spec.pools.items() if answer.machine == machine]
    steps = [step for group in cluster.groups if group.name in pools for step in group.steps]
    found = next(step.variables for step in steps if step.key == "node_health.configure")
    return {"node": "gpu001"} | {key.removeprefix("node_health_"): found[key] for key in found}


def faults_of(name: str) -> list[str]:
    """Return the faults that a machine can have, by its NICs and GPUs."""
    known = layout(name)
    machine = known.get("own") or msgspec.to_builtins(load_catalog().machines[known["machine"]])
    kinds = {
        "front end" if nic.get("front_end") and nic["kind"] == "ethernet" else nic["kind"]
        for nic in machine["nics"]
    } | {machine["gpu"]["vendor"], "nvlink" if "nvlink" in known["gpus"] else ""}
    if "rails" in known and "vmbus" not in known["nics"][0]:
        kinds.add("lanes")
    return [name for name, fault in FAULTS.items() if kinds & set(fault.get("kinds", kinds))]


class FakeNode:
    """A node of a layout in a folder: bin with its tools, root with its files."""

    def __init__(self, name: str, folder: Path, *, board: bool = False) -> None:
        """Write a healthy one; board: what it must have is as the catalog's board has it."""
        self.name, self.folder, self.known = name, folder, layout(name)
        self.root = folder / "root"
        looked_at = {"mounts": [], "disk_most_percent": 100}
        self.expected = expected(name, folder, board=board) | looked_at
        (folder / "node-health.json").write_text(json.dumps(self.expected))
        for nic in self.known["nics"]:
            self._nic(nic)
        self._gpus()
        gib = self.expected.get("memory_gib") or 64
        self.file("/proc/meminfo", f"MemTotal:       {int(gib * 2**20)} kB")
        self.file("/proc/mounts", "/dev/nvme0n1p2 / ext4 rw,relatime 0 0")
        self.file("/proc/sys/kernel/random/boot_id", "6e9d3b1c-7f0a-4c58-8b52-0e1f2a3b4c5d")
        for virtual in ("bond0", "docker0", "lo"):
            self.file(f"/sys/class/net/{virtual}/operstate", "up")
        self._tools()

    def file(self, path: str, text: str) -> Path:
        """Write a file of the node."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    @contextmanager
    def fault(self, name: str) -> Iterator[None]:
        """Have a fault, and put back what was there."""
        fault = FAULTS[name]
        if "remove" in fault:
            place, kept = self._place(fault["remove"]), self.folder / "removed"
            place.rename(kept)
            try:
                yield
            finally:
                kept.rename(place)
            return
        file, text = self._changed(fault)
        before = file.read_text()
        assert before != text, f"{self.name}: {name} changes nothing"
        file.write_text(text)
        try:
            yield
        finally:
            file.write_text(before)

    def _changed(self, fault: dict[str, Any]) -> tuple[Path, str]:
        """Return the file that a fault changes, and what it says then."""
        if "file" in fault:
            return self._place(fault["file"]), f"{fault['text']}\n"
        answer = self.folder / "bin/said"
        if "log" in fault:
            line = json.dumps({"__CURSOR": "s=1;i=9", "MESSAGE": fault["log"]})
            return answer / "journalctl", (answer / "journalctl").read_text() + line + "\n"
        if "clock" in fault:
            return answer / "chronyc", (answer / "chronyc").read_text().replace(
                "Normal", fault["clock"]
            )
        if "gpu-link" in fault:
            first, second = (answer / "status").read_text().split("GPU 1:", maxsplit=1)
            speed = self.known["gpus"]["nvlink"][1]
            return answer / "status", f"{first}GPU 1:{second.replace(speed, fault['gpu-link'], 1)}"
        parts = re.split("(?=<gpu id=)", (answer / "query").read_text())
        if fault["gpu"] == "cut":
            del parts[2]
        else:
            assert fault["gpu"][0] in parts[2]
            parts[2] = parts[2].replace(*fault["gpu"], 1)
        return answer / "query", "".join(parts)

    def _place(self, path: str) -> Path:
        rails = self.known.get("rails") or [n["rdma"] for n in self.known["nics"] if "rdma" in n]
        driver = [nic["net"] for nic in self.known["nics"] if nic.get("driver") == "gve"]
        up = [
            nic["net"]
            for nic in self.known["nics"]
            if nic.get("rdma") not in rails and "net" in nic and not nic.get("down")
            and nic.get("layer") != "InfiniBand" and "usb" not in nic and "speed" in nic
            and nic.get("master", "bond") in {"bond", "bond0"}
        ]  # fmt: skip
        folders = {
            "rail": f"/sys/class/infiniband/{rails[2] if len(rails) > 2 else ''}",
            "link": f"/sys/class/net/{driver[-1] if driver else ''}",
            "front": f"/sys/class/net/{up[0] if up else ''}",
            "gpu": "/sys/class/drm/renderD136",
        }
        return self.root / path.format(**folders).lstrip("/")

    def _device(self, nic: dict[str, Any]) -> Path:
        """Return the folder of a NIC's device, below its bridges."""
        if nic.get("usb"):
            return self._pci("00:14.0") / "usb1/1-14/1-14:2.0"
        if "vmbus" in nic:
            bus = self.root / "sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00"
            if not nic["vmbus"]:
                return bus / "000d3a74-0185-000d-3a74-0185000d3a74"
            domain = nic["vmbus"][:4]
            return bus / f"47505500-{domain}-0000-3130-444532304235/pci{domain}:00/{nic['vmbus']}"
        if "path" in nic:
            return self._pci(*nic["path"].split("/"))
        if "gpu" in nic:
            return self._pci(*self._switch(nic["gpu"]), nic["pci"])
        return self._pci(f"{nic['pci'][:5]}00:1d.{int(nic['pci'][5:7], 16) % 8}", nic["pci"])

    def _switch(self, gpu: int) -> tuple[str, str]:
        """Return the made-up root port and switch that a GPU shares with its NICs."""
        shared = gpu // 2 * 2 if "h20-" in self.name else gpu
        return (f"0000:{0xE0 + shared:02x}:01.0", f"0000:{0xE8 + shared:02x}:00.0")

    def _pci(self, *path: str) -> Path:
        addresses = [part if part.count(":") == 2 else f"0000:{part}" for part in path]
        return self.root.joinpath("sys/devices", f"pci{addresses[0][:7]}", *addresses)

    def _nic(self, nic: dict[str, Any]) -> None:
        device = self._device(nic)
        device.mkdir(parents=True, exist_ok=True)
        virtual = "vmbus" in nic  # a virtual function has no link of its own
        for name, text in {
            "uevent": f"DRIVER={nic.get('driver', 'mlx5_core')}",
            "current_link_speed": "Unknown" if virtual else "32.0 GT/s PCIe",
            "max_link_speed": "Unknown" if virtual else "32.0 GT/s PCIe",
            "current_link_width": "0" if virtual else "16",
            "max_link_width": "0" if virtual else "16",
        }.items():
            (device / name).write_text(f"{text}\n")
        if "rdma" in nic:
            state = ("1: DOWN", "3: Disabled") if nic.get("down") else ("4: ACTIVE", "5: LinkUp")
            port = {"state": state[0], "phys_state": state[1], "rate": nic["rate"]}
            port |= {"link_layer": nic["layer"]} | {f"counters/{name}": "0" for name in _COUNTERS}
            self._class("infiniband", nic["rdma"], device, {"node_guid": _guid(nic["rdma"])} | {
                f"ports/1/{name}": text for name, text in port.items()
            })  # fmt: skip
        if "net" in nic:
            infiniband = nic.get("layer") == "InfiniBand"
            self._class("net", nic["net"], device, {
                "operstate": "down" if nic.get("down") or infiniband else "up",
                "type": "32" if infiniband else "1",
                "speed": str(nic.get("speed", -1)),
                "statistics/rx_crc_errors": "0",
            })  # fmt: skip
            if "master" in nic:
                target = self.root / "sys/class/net" / nic["master"]
                place = device / "net" / nic["net"] / "master"
                place.symlink_to(os.path.relpath(target, place.parent))

    def _class(self, kind: str, name: str, device: Path, files: dict[str, str]) -> None:
        """Write an entry of a class below its device, with the links that the kernel has."""
        entry = device / kind / name
        for path, text in files.items():
            (entry / path).parent.mkdir(parents=True, exist_ok=True)
            (entry / path).write_text(f"{text}\n")
        (entry / "device").symlink_to("../..")
        link = self.root / "sys/class" / kind / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(entry, link.parent))

    def _gpus(self) -> None:
        gpus = self.known["gpus"]
        bus = self.root / "sys/bus/pci/devices"
        bus.mkdir(parents=True)
        for number, path in enumerate(gpus.get("paths") or gpus["ids"]):
            if "paths" in gpus:
                device = self._pci(*path.split("/"))
            elif "vmbus" in self.known["nics"][0]:
                device = self._device({"vmbus": path[4:].lower()})
            elif any(nic.get("gpu") is not None for nic in self.known["nics"]):
                device = self._pci(*self._switch(number), path[4:].lower())
            else:
                device = self._pci(f"{path[4:9]}00:00.0", path[4:].lower())
            device.mkdir(parents=True)
            (bus / device.name).symlink_to(os.path.relpath(device, bus))
            amd = gpus.get("vendor") == "amd"
            (device / "vendor").write_text("0x1002\n" if amd else "0x10de\n")
            (device / "class").write_text("0x120000\n" if amd else "0x030200\n")
            if amd:
                for name, text in {
                    "unique_id": f"e0a100000000000{number}", "mem_info_vram_total": gpus["memory"],
                    "current_link_width": "16", "max_link_width": "16",
                    "ras/umc_err_count": "ue: 0\nce: 4", "ras/gfx_err_count": "ue: 0\nce: 0",
                    "hwmon/hwmon4/temp1_input": "41000", "hwmon/hwmon4/temp1_crit": "100000",
                }.items():  # fmt: skip
                    (device / name).parent.mkdir(parents=True, exist_ok=True)
                    (device / name).write_text(f"{text}\n")
                self._class("drm", f"renderD{128 + 8 * number}", device, {"dev": "226:128"})

    def _tools(self) -> None:
        """Write tools that answer from files: a fault changes the file."""
        answer = self.folder / "bin/said"
        answer.mkdir(parents=True)
        for tool in ("journalctl", "chronyc", "smartctl"):
            (answer / tool).write_text(next(iter(recorded.calls(recorded.text(tool)).values())))
            _program(answer.parent / tool, f"exec cat {shlex.quote(str(answer / tool))}")
        gpus = self.known["gpus"]
        if "ids" not in gpus:
            return
        answers = recorded.calls(recorded.text("nvidia-smi"))
        head, first = re.split("(?=<gpu id=)", answers["nvidia-smi -q -x"])[:2]
        first = first.replace("NVIDIA H100 80GB HBM3", gpus["name"]).replace(
            "81559 MiB", gpus["memory"]
        )
        query = [
            first.replace("00000000:19:00.0", gpu).replace("1650023000000", f"165002300000{number}")
            .replace("-000000000000</uuid>", f"-00000000000{number}</uuid>")
            for number, gpu in enumerate(gpus["ids"])
        ]  # fmt: skip
        (answer / "query").write_text("".join([head, *query, "</nvidia_smi_log>\n"]))
        count, speed = gpus["nvlink"]
        named = [f"GPU {n}: {gpus['name']} (UUID: GPU-{n})\n" for n in range(len(gpus["ids"]))]
        links = "".join(f"\t Link {link}: {speed}\n" for link in range(count))
        errors = "".join(
            f"\t Link {n}: {kind} Errors: 0\n"
            for n in range(count)
            for kind in ("Replay", "Recovery", "CRC")
        )
        (answer / "status").write_text("".join(name + links for name in named))
        (answer / "errors").write_text("".join(name + errors for name in named))
        _program(
            answer.parent / "nvidia-smi",
            f'cd {shlex.quote(str(answer))}\ncase "$*" in\n"-q -x") exec cat query ;;\n'
            '"nvlink --status") exec cat status ;;\n"nvlink --errorcounters") exec cat errors ;;\n'
            '*) echo "not recorded: $*" >&2; exit 64 ;;\nesac',
        )

    def reset(self) -> None:
        """Drop every observation of the node: it is new."""
        shutil.rmtree(self.folder / "state", ignore_errors=True)
        shutil.rmtree(self.root / "var", ignore_errors=True)


def _program(path: Path, script: str) -> None:
    write_double(path, script)


def _guid(name: str) -> str:
    number = sum(ord(letter) << n for n, letter in enumerate(name)) & 0xFFFF
    return f"a088:c203:00aa:{number:04x}"
