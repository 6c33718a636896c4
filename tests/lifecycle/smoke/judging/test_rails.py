"""Each rail of each node is proven by its own counters; the sysfs trees are made up.

Shapes of the trees: Linux' Documentation/ABI/stable/sysfs-class-infiniband (counters in units of 4
bytes, link_layer, rate "400 Gb/sec (4X NDR)"), and drivers/infiniband/hw/efa/efa_verbs.c for EFA's
hw_counters (read 2026-11).
"""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest
from tests.lifecycle.smoke.vendor_logs import SETUPS, log_of

from gcluster.lifecycle.smoke.judging.judge import judge
from gcluster.lifecycle.smoke.judging.verdict import Expectation, Verdict
from gcluster.lifecycle.smoke.launch import RAILS
from gcluster.lifecycle.smoke.reading.parse import parse_log
from gcluster.lifecycle.smoke.saved import SavedResult, judge_saved, rails_wanted
from gcluster.schemas.catalog import load_catalog

CATALOG = load_catalog()
NODES = 64
SIZES = [1 << power for power in range(3, 34)]
SENT = 2 * 20 * sum(SIZES)  # out of place and in place, 20 runs each: at least once the message
PART = SENT // 8
MADE_BY = {"infiniband": ("counters/port_xmit_data", "counters/port_rcv_data", 4)}
EFA = ("hw_counters/tx_bytes", "hw_counters/rx_bytes", 1)


def port(
    root: Path, device: str, carries: int, *, layer: str = "InfiniBand", gbps: int = 400
) -> str:
    """Make a port; return the shell lines that have it carry this many bytes more."""
    folder = root / "infiniband" / device / "ports/1"
    sent, received, unit = EFA if layer == "Unspecified" else MADE_BY["infiniband"]
    for name, text in (("link_layer", layer), ("rate", f"{gbps} Gb/sec (4X NDR)")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n")
    lines = []
    for name in (sent, received):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("123456789\n")
        lines.append(f"echo {123456789 + carries // unit} > {folder / name}")
    return "\n".join(lines)


def counted(
    root: Path, host: str, program: str, rank: int = 0, known: tuple[str, ...] = ()
) -> list[str]:
    """Return what the script prints on a node whose ranks are this program."""
    record = root / "rails"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("".join(f"{name}\n" for name in known))
    environment = {
        "PATH": "/usr/bin:/bin",
        "GCLUSTER_RAILS": str(record),
        "GCLUSTER_SYS_CLASS": str(root),
        "SLURMD_NODENAME": host,
        "SLURM_LOCALID": str(rank),
    }
    words = ["sh", "-c", RAILS.read_text(), "rails", "sh", "-c", program]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.splitlines()


def node(root: Path, host: str, *, dead: tuple[str, ...] = (), half: str = "") -> list[str]:
    """Count a machine of eight rails, two ports for storage and an unplugged one."""
    program = [
        port(
            root,
            f"mlx5_{number}",
            0 if f"mlx5_{number}" in dead else 2 * PART,
            gbps=200 if f"mlx5_{number}" == half else 400,
        )
        for number in range(8)
    ]
    program += [port(root, f"mlx5_{number}", 5_000_000, gbps=200) for number in (8, 9)]
    program.append(port(root, "mlx5_10", 0, layer="Ethernet", gbps=25))
    return counted(root, host, "\n".join(program))


def judged(lines: list[str], nodes: int, name: str = "infiniband-ndr") -> SavedResult:
    machine, fabric = SETUPS[name].machine, name
    text = io.StringIO("\n".join([*lines, ""]))
    return judge_saved(text, fabric=fabric, machine=machine, nodes=nodes, catalog=CATALOG)


def fleet(tmp_path: Path, bad: dict[str, list[str]]) -> list[str]:
    """Return the counters of 64 nodes: these, and the others healthy."""
    healthy = node(tmp_path / "healthy", "gpu001")
    names = [f"gpu{number:03d}" for number in range(1, NODES + 1)]
    return [
        line.replace(" gpu001 ", f" {name} ") for name in names for line in bad.get(name, healthy)
    ]


@pytest.fixture
def run_of_64(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a log of 64 DGX H100 that reach 355 GB/s, above their floor of 320."""
    monkeypatch.setitem(SETUPS, "infiniband-ndr", SETUPS["infiniband-ndr"]._replace(nodes=NODES))
    return log_of("infiniband-ndr", SETUPS["infiniband-ndr"].via, share=355 / 320)


def test_of_64_nodes_above_their_floor_the_one_dead_rail_is_named(
    run_of_64: list[str], tmp_path: Path
) -> None:
    rails = fleet(tmp_path, {"gpu017": node(tmp_path / "bad", "gpu017", dead=("mlx5_3",))})
    verdict = judged([*run_of_64, *rails], NODES).verdict
    assert round(verdict.busbw or 0) == 354
    assert (verdict.floor or 0) < (verdict.busbw or 0)
    assert [reason.code for reason in verdict.reasons] == ["dead-rail"]
    assert "rail mlx5_3 of gpu017 sent 0 GB and received 0" in verdict.reasons[0].message
    assert verdict.bad_rails == (("gpu017", "mlx5_3"),)


def test_64_healthy_nodes_pass_and_it_is_reported_what_is_proven(
    run_of_64: list[str], tmp_path: Path
) -> None:
    verdict = judged([*run_of_64, *fleet(tmp_path, {})], NODES).verdict
    assert verdict.passed, verdict.reasons
    assert verdict.rails.startswith("each of 8 rails on 64 nodes carried its part")


def test_three_dead_rails_a_slow_one_and_one_that_is_gone_are_all_named(
    run_of_64: list[str], tmp_path: Path
) -> None:
    three = node(tmp_path / "three", "gpu002", dead=("mlx5_0", "mlx5_5", "mlx5_7"))
    gone = [line for line in node(tmp_path / "gone", "gpu003") if " mlx5_4/1 " not in line]
    slow = node(tmp_path / "slow", "gpu004", half="mlx5_6")
    rails = fleet(tmp_path, {"gpu002": three, "gpu003": gone, "gpu004": slow})
    verdict = judged([*run_of_64, *rails], NODES).verdict
    message = [reason.message for reason in verdict.reasons]
    assert sorted(verdict.bad_rails) == [
        ("gpu002", "mlx5_0"), ("gpu002", "mlx5_5"), ("gpu002", "mlx5_7"),
        ("gpu003", "mlx5_4"), ("gpu004", "mlx5_6"),
    ]  # fmt: skip
    assert "rail mlx5_4 of gpu003 is not there" in message
    assert "rail mlx5_6 of gpu004 runs at 200 Gb/s, not 400" in message


def test_two_nodes_with_the_same_dead_rail_are_found_behind_their_nvlink(tmp_path: Path) -> None:
    bad = [
        line
        for name in ("gpu001", "gpu002")
        for line in node(tmp_path / name, name, dead=("mlx5_2",))
    ]
    setup = SETUPS["infiniband-ndr"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SETUPS, "infiniband-ndr", setup._replace(nodes=2))
        lines = log_of("infiniband-ndr", setup.via)
    assert judged([*lines, *bad], 2).verdict.bad_rails == (
        ("gpu001", "mlx5_2"),
        ("gpu002", "mlx5_2"),
    )


def efa(root: Path, host: str, dead: str = "") -> list[str]:
    """Count a p5: 32 EFAs, of which one may be dead."""
    names = [f"rdmap{number}s0" for number in range(32)]
    return counted(
        root,
        host,
        "\n".join(
            port(root, name, 0 if name == dead else SENT // 32, layer="Unspecified", gbps=100)
            for name in names
        ),
    )


@pytest.mark.parametrize("dead", ["", "rdmap7s0"])
def test_one_of_32_efas_that_is_dead_is_named(tmp_path: Path, dead: str) -> None:
    lines = log_of("efa-v2", SETUPS["efa-v2"].via)
    rails = [*efa(tmp_path / "1", "gpu001"), *efa(tmp_path / "2", "gpu002", dead)]
    found = judged([*lines, *rails], 2, "efa-v2").verdict.bad_rails
    assert found == ((("gpu002", dead),) if dead else ())


@pytest.mark.parametrize(
    ("rails", "why"),
    [
        ([], "no counters of gpu[001-004]"),
        (["# gcluster rail: gpu001 after mlx5_0/1 InfiniBand 400 - -"], "no counters of gpu[001"),
    ],
)
def test_what_was_not_counted_is_reported_and_not_taken_for_healthy(
    rails: list[str], why: str
) -> None:
    lines = log_of("infiniband-ndr", SETUPS["infiniband-ndr"].via)
    verdict = judged([*lines, *rails], 4).verdict
    (warned,) = [one for one in verdict.warnings if one.code == "rails-not-counted"]
    assert why in warned.message
    assert verdict.rails.startswith("not proven: ")


def test_of_googles_nics_it_is_reported_that_nothing_counts_them() -> None:
    lines = log_of("gpudirect-tcpxo", SETUPS["gpudirect-tcpxo"].via)
    verdict = judged(lines, 2, "gpudirect-tcpxo").verdict
    assert verdict.rails == "not proven: no port counter of gvnic is known"


def test_inside_an_nvlink_domain_no_nic_is_requested_and_beyond_it_they_share() -> None:
    machine, fabric = CATALOG.machines["gb200-nvl72"], CATALOG.fabrics["infiniband-ndr"]
    assert rails_wanted(fabric, machine, 18, simulated=False) is None
    beyond = rails_wanted(fabric, machine, 36, simulated=False)
    assert beyond is not None
    assert beyond.domain_nodes == 18


def test_where_the_node_has_found_its_rails_no_other_port_is_counted(tmp_path: Path) -> None:
    for device in ("mlx5_1", "mlx5_10", "mlx5_2"):
        port(tmp_path, device, 0)
    lines = counted(tmp_path, "gpu001", "true", known=("mlx5_1", "mlx5_2"))
    assert [line.split()[5] for line in lines] == 2 * ["mlx5_1/1", "mlx5_2/1"]


def test_only_the_first_rank_of_a_node_counts_and_the_programs_end_is_kept(
    tmp_path: Path,
) -> None:
    port(tmp_path, "mlx5_0", 0)
    assert counted(tmp_path, "gpu001", "echo table", rank=1) == ["table"]
    words = ["sh", "-c", RAILS.read_text(), "rails", "sh", "-c", "exit 7"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 7


def test_sockets_must_have_carried_the_messages_over_an_interface(tmp_path: Path) -> None:
    statistics = tmp_path / "net/eth0/statistics"
    statistics.mkdir(parents=True)
    grow = "\n".join(f"echo {SENT} > {statistics / n}" for n in ("tx_bytes", "rx_bytes"))
    for name in ("tx_bytes", "rx_bytes"):
        (statistics / name).write_text("0\n")
    lines = counted(tmp_path, "gpu001", grow)

    def verdict(rails: list[str]) -> Verdict:
        log = parse_log([*log_of("ethernet", SETUPS["ethernet"].via), *rails])
        wanted = rails_wanted(CATALOG.fabrics["ethernet"], None, 2, simulated=True)
        return judge(log, Expectation(ranks=16, node_count=2, rails=wanted))

    both = [*lines, *(line.replace("gpu001", "gpu002") for line in lines)]
    assert verdict(both).bad_rails == ()
    idle = [
        line.replace(f" {SENT} {SENT}", " 900 900").replace("gpu001", "gpu002") for line in lines
    ]
    assert verdict([*lines, *idle]).bad_rails == (("gpu002", "eth0"),)
