"""RoCE's settings of an interface: which differ, and the actions that set them.

Packets are sorted by their DSCP, the priority of RoCE's DSCP is kept lossless (PFC) and its senders
slow down on congestion marks (ECN); both verbs and connection manager mark their packets. The role
roce installs this file on nodes as well, for the unit that sets an interface when it appears.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .interface_settings import FileText, Setting, SettingError, address_settings
from .node import first_line, run, system_path
from .rdma import NVIDIA, driver_of, interface_file, interface_of, rails

SETTINGS = Path("/etc/gcluster/roce.json")
"""What the unit that sets an interface when it appears is to set."""
CNP_PRIORITY = 6
"""Congestion notifications overtake the data they are about (NVIDIA, RoCE configuration guide)."""
ECN_CAPABLE = 2
"""Last bits of a packet's traffic class: ECT(0), switches may mark it instead of dropping."""


class Qos(NamedTuple):
    """mlnx_qos' values of an interface."""

    dcbx: str
    trust: str
    pfc: list[str]
    """0 or 1 for each priority."""
    priorities: dict[int, int]
    """DSCP to priority."""


def traffic_class(settings: dict[str, Any]) -> int:
    """Return the byte that marks RoCE's packets: its DSCP, and that ECN is understood."""
    return int(settings["dscp"]) * 4 + ECN_CAPABLE


def query_qos(interface: str) -> Qos:
    """Return mlnx_qos' values of an interface."""
    code, text = run("mlnx_qos", "-i", interface)
    if code:
        raise SettingError(f"mlnx_qos doesn't answer for {interface}: {text}")
    dcbx = re.search(r"DCBX mode: *(\S+)", text)
    trust = re.search(r"Priority trust state: *(\S+)", text)
    pfc = re.search(r"enabled((?: +[01])+)", text)
    priorities = {
        int(dscp): int(priority)
        for priority, listed in re.findall(r"prio:(\d) dscp:([\d,]+)", text)
        for dscp in listed.strip(",").split(",")
    }
    mode = dcbx[1] if dcbx else ""
    return Qos(mode, trust[1] if trust else "", pfc[1].split() if pfc else [], priorities)


def kernel_files(device: str, interface: str, settings: dict[str, Any]) -> list[FileText]:
    """Return the files of the kernel and their expected content."""
    ecn = system_path("/sys/class/net") / interface / "ecn"
    adapter = system_path("/sys/class/infiniband") / device
    priority = settings["priority"]
    return [
        FileText(ecn / f"roce_np/enable/{priority}", "1"),
        FileText(ecn / f"roce_rp/enable/{priority}", "1"),
        FileText(ecn / "roce_np/cnp_dscp", str(settings["congestion_dscp"])),
        FileText(ecn / "roce_np/cnp_802p_prio", str(CNP_PRIORITY)),
        FileText(adapter / "tc/1/traffic_class", str(traffic_class(settings))),
    ]


def ring_sizes(interface: str) -> tuple[list[int], int]:
    """Return how many entries the rings have, and how many they may have."""
    _, text = run("ethtool", "--show-ring", interface)
    found = [int(n) for n in re.findall(r"^[RT]X:\s*(\d+)", text, re.MULTILINE)]
    return found[2:], min(found[:2], default=0)


def differing_settings(device: str, rail: int, settings: dict[str, Any]) -> Iterator[Setting]:
    """Yield the settings of a rail that differ."""
    interface = interface_of(device)
    if not interface:
        raise SettingError(f"{device} has no interface of its own")
    if rail < len(settings["networks"]):
        yield from address_settings(interface, rail, settings["networks"][rail])
    if not settings["managed"]:
        return
    if (driver := driver_of(device)) not in {NVIDIA, ""}:
        raise SettingError(
            f"{device} is driven by {driver}, and only NVIDIA's adapters are set here: write "
            "managed: false under rdma of the pool, and set it by its maker's tools"
        )
    yield from _priority_settings(interface, settings)
    mtu = str(settings["mtu"])
    if interface_file(interface, "mtu") != mtu:
        command = ("ip", "link", "set", "dev", interface, "mtu", mtu)
        yield Setting(f"{interface} has MTU {mtu}", command)
    yield from _connection_settings(device, settings)
    for file in kernel_files(device, interface, settings):
        if first_line(file.path).rpartition("=")[2] != file.text:  # "Global tclass=106"
            yield Setting(f"{file.path} says {file.text}", file)
    ring, most = ring_sizes(interface)
    wanted = min(settings["ring"], most)
    if ring and any(entries != wanted for entries in ring):
        sizes = ("rx", str(wanted), "tx", str(wanted))
        yield Setting(
            f"{interface} has rings of {wanted}", ("ethtool", "--set-ring", interface, *sizes)
        )
    if re.search(r"[RT]X:\s*on", run("ethtool", "--show-pause", interface)[1]):
        off = ("autoneg", "off", "rx", "off", "tx", "off")
        yield Setting(
            f"{interface} pauses priorities, not all", ("ethtool", "--pause", interface, *off)
        )


def _priority_settings(interface: str, settings: dict[str, Any]) -> Iterator[Setting]:
    found = query_qos(interface)
    dscp, priority = settings["dscp"], settings["priority"]
    mask = ["1" if each == priority else "0" for each in range(8)]
    tool = ("mlnx_qos", "-i", interface)
    # By the firmware's DCBX a switch's offer replaces what is set here (mlnx_qos --help, --dcbx).
    if found.dcbx not in {"OS", ""}:
        yield Setting(f"{interface} takes no settings from its switch", (*tool, "--dcbx", "os"))
    if found.trust != "dscp":
        yield Setting(f"{interface} sorts packets by DSCP", (*tool, "--trust", "dscp"))
    if found.priorities.get(dscp) != priority:
        what = f"{interface} has DSCP {dscp} on priority {priority}"
        yield Setting(what, (*tool, "--dscp2prio", f"set,{dscp},{priority}"))
    if found.pfc != mask:
        what = f"{interface} keeps priority {priority} lossless"
        yield Setting(what, (*tool, "--pfc", ",".join(mask)))


def _connection_settings(device: str, settings: dict[str, Any]) -> Iterator[Setting]:
    port = ("-d", device, "-p", "1")
    if run("cma_roce_mode", *port)[1] != "RoCE v2":
        yield Setting(f"{device} connects with RoCE v2", ("cma_roce_mode", *port, "-m", "2"))
    wanted = str(traffic_class(settings))
    tos = run("cma_roce_tos", "-d", device)[1]
    if tos.split()[-1:] != [wanted]:
        what = f"{device} marks connections with {wanted}"
        yield Setting(what, ("cma_roce_tos", "-d", device, "-t", wanted))


def spread_interrupts(interface: str) -> None:
    """Pin the adapter's interrupts to the cores next to it; silent where that isn't possible."""
    node = interface_file(interface, "device/numa_node")
    if node and node != "-1":
        run("set_irq_affinity_bynode.sh", node, interface)


def set_interface(interface: str, settings: dict[str, Any]) -> list[str]:
    """Set an interface where it is a rail's; return what was changed."""
    chosen, _ = rails("roce", settings["devices"], settings["gbps"])
    done = []
    for rail, device in enumerate(chosen):
        if interface_of(device) == interface:
            for setting in list(differing_settings(device, rail, settings)):
                setting.apply()
                done.append(setting.description)
            spread_interrupts(interface)
    return done


def main() -> None:
    """Set the interface that is named: the program of the unit gcluster-roce@INTERFACE."""
    try:
        done = set_interface(sys.argv[1], json.loads(SETTINGS.read_text(encoding="utf-8")))
    except SettingError as error:
        sys.exit(str(error))
    sys.stdout.writelines(f"{line}\n" for line in done)


if __name__ == "__main__":
    main()
