"""A node takes pods once all that it waits for is there, and not before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from .kubernetes_node import Node

TAINT = "gcluster.local/startup"
GPU, RAIL = "awaits.gcluster.local/nvidia.com_gpu", "awaits.gcluster.local/nvidia.com_a_rail_0"
CLAIMS = "awaits.gcluster.local/gpu.nvidia.com"
Look: TypeAlias = Callable[..., tuple[list[str], str]]


def line(
    *labels: str, taints: str = TAINT, offers: dict[str, str] | None = None, **more: str
) -> str:
    """Return a node as kubectl's template prints it."""
    named = dict.fromkeys(labels, "true") | {f"nvidia.com/{k}": v for k, v in more.items()}
    return "\x1f".join(["gpu001", json.dumps(named), taints, json.dumps(offers or {"cpu": "8"})])


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Return a function: what the program sends to the API for a node, and what it prints."""
    node = Node(tmp_path)

    def run_program(text: str, *, drivers: str = "", taint: str = "") -> tuple[list[str], str]:
        (tmp_path / "nodes").write_text(text + "\n")
        node.double(
            "kubectl",
            f'case "$*" in *resourceslices*) echo {drivers} ;; *get*nodes*) cat {tmp_path}/nodes ;;'
            f" *taint*) {taint or ':'} ;; esac",
        )
        code, printed, errors = node.run("kubernetes-startup.py", "--once")
        assert code == 0, errors
        calls = [call.partition("6443 ")[2] for call in node.calls()]
        return [call for call in calls if call.startswith("taint")], printed

    return run_program


@pytest.mark.parametrize(
    ("node", "missing"),
    [
        (line(GPU), "nvidia.com/gpu"),
        (line(GPU, offers={"nvidia.com/gpu": "0"}), "nvidia.com/gpu"),
        (line(GPU, RAIL, offers={"nvidia.com/gpu": "8"}), "nvidia.com/a_rail_0"),
        (line(CLAIMS), "gpu.nvidia.com"),
        (
            line(GPU, offers={"nvidia.com/gpu": "8"}, **{"mig.config": "all-1g.10gb"}),
            "nvidia.com/mig.config=all-1g.10gb",
        ),
    ],
)
def test_a_node_that_lacks_something_keeps_its_taint(look: Look, node: str, missing: str) -> None:
    calls, printed = look(node)
    assert calls == []
    assert printed == f"gpu001 waits for {missing}\n"


@pytest.mark.parametrize(
    ("node", "drivers"),
    [
        (line(GPU, RAIL, offers={"nvidia.com/gpu": "8", "nvidia.com/a_rail_0": "1"}), ""),
        (line(CLAIMS), "gpu.nvidia.com"),
        (
            line(
                GPU,
                offers={"nvidia.com/gpu": "56"},
                **{"mig.config": "all-1g.10gb", "mig.config.state": "success"},
            ),
            "",
        ),
        (line(), ""),  # nothing is awaited any more
    ],
)
def test_a_node_that_has_all_of_it_loses_its_taint(look: Look, node: str, drivers: str) -> None:
    calls, printed = look(node, drivers=drivers)
    assert calls == [f"taint node gpu001 {TAINT}:NoSchedule-"]
    assert printed == "gpu001 takes pods: its devices are there\n"


def test_other_taints_are_left_and_another_control_plane_may_have_been_first(look: Look) -> None:
    assert look(line(GPU, taints="example.edu/x", offers={"nvidia.com/gpu": "8"})) == ([], "")
    gone = f"{{ echo 'error: taint \"{TAINT}:NoSchedule\" not found' >&2; exit 1; }}"
    calls, _ = look(line(GPU, offers={"nvidia.com/gpu": "8"}), taint=gone)
    assert len(calls) == 1


def test_it_watches_and_checks_again_while_a_node_waits(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.write("etc/kubernetes/admin.conf")
    waits, has = line(CLAIMS), line(GPU, offers={"nvidia.com/gpu": "8"}).replace("001", "002")
    # A watch puts an empty line after each, and a line comes in two parts.
    (tmp_path / "first").write_text(waits + "\n\n" + has[:20])
    (tmp_path / "rest").write_text(has[20:] + "\n")
    node.double(
        "kubectl",
        f'case "$*" in *--watch*) cat {tmp_path}/first; sleep 1; cat {tmp_path}/rest; sleep 3 ;;'
        f" *resourceslices*) [ ! -e {tmp_path}/taken ] || echo gpu.nvidia.com ;;"
        f" *taint*) touch {tmp_path}/taken ;; esac",
    )
    node.instead = {"AGAIN_S, AT_LEAST_S = 3, 300": "AGAIN_S, AT_LEAST_S = 0.2, 300"}
    code, printed, errors = node.run("kubernetes-startup.py")
    assert (code, errors) == (1, "the API server ended the watch\n")
    assert printed.splitlines() == [
        "gpu002 takes pods: its devices are there",
        "gpu001 takes pods: its devices are there",
    ]
