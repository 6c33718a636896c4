"""What steps leave is written down as it is, by a shell: run here, on files of this test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from gcluster.inventory.compile import Step
from gcluster.inventory.compile.steps import PHASES, Stage
from gcluster.lifecycle.nodes.converge import seals
from gcluster.lifecycle.nodes.converge.role_files import (
    Traces,
    merged,
    phase_traces,
    role_path,
    traces_of,
)
from gcluster.lifecycle.nodes.converge.seals import read_seals_command, seal_command

ROLES = sorted(path.name for path in role_path("base").parent.iterdir() if path.is_dir())
DATA = {"firmware"}
"""Roles that leave nothing which is not in their own report."""


def _run(command: str) -> dict[tuple[str, str], str]:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    rows = (re.fullmatch(r"(\w+) (.*) (\S+)", line) for line in done.stdout.splitlines())
    return {(row[1], row[3]): row[2] for row in rows if row}


@pytest.mark.parametrize("role", ROLES)
def test_every_role_says_what_it_leaves_in_phases_that_it_has(role: str) -> None:
    said = phase_traces(role)
    assert set(said) <= set(PHASES)
    assert all((role_path(role) / "tasks" / f"{phase}.yml").exists() for phase in said)
    assert bool(said) is (role not in DATA)


@pytest.mark.parametrize("role", ROLES)
def test_every_file_that_a_role_writes_is_looked_at(role: str) -> None:
    """Those at a fixed path, by `dest:` of its tasks."""
    written = set()
    for path in sorted((role_path(role) / "tasks").glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        written |= set(re.findall(r"^\s+dest: (/etc/\S+)$", text, re.MULTILINE))
    written = {path for path in written if "{{" not in path and not path.endswith("/")}
    told = {p for said in phase_traces(role).values() for p in (*said.files, *said.keys,
                                                           *said.sysctl_files)}  # fmt: skip
    assert written - told <= NOT_LOOKED_AT


NOT_LOOKED_AT = {
    "/etc/apt/preferences.d/gcluster-slurm",  # slurm's, written by slurmdbd too
    "/etc/systemd/system/gcluster-self-converge.timer",
}


def test_files_are_told_by_hash_and_mode_and_what_is_missing_not_at_all(tmp_path: Path) -> None:
    here, gone = tmp_path / "a b.conf".replace(" ", "-"), tmp_path / "gone"
    here.write_text("x", encoding="utf-8")
    here.chmod(0o640)
    found = _run(read_seals_command(Traces(files=(str(here), str(gone)))))
    assert found["file", str(here)].startswith("2d711642")
    assert found["mode", str(here)].startswith("640,")
    assert not [name for _, name in found if name == str(gone)]


def test_of_a_file_that_is_shared_only_our_block_counts(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 x\n# BEGIN gcluster demo\na\n# END gcluster demo\n")
    ask = read_seals_command(Traces(blocks=(str(hosts),)))
    before = _run(ask)
    hosts.write_text(hosts.read_text().replace("127.0.0.1 x", "127.0.0.1 y"))
    assert _run(ask) == before
    hosts.write_text(hosts.read_text().replace("\na\n", "\nb\n"))
    assert _run(ask) != before


def test_mounts_packages_settings_and_links_are_told() -> None:
    found = _run(read_seals_command(Traces(mounts=("/proc", "/none"), packages=("bash", "no-such"),
                                     sysctls=("kernel.ostype",), links=True)))  # fmt: skip
    assert found["mount", "/proc"].startswith("proc,proc,")
    assert ("mount", "/none") not in found
    assert found["package", "bash"]
    assert found["sysctl", "kernel.ostype"] == "Linux"
    assert not [name for kind, name in found if kind == "link" and name == "lo"]


def test_each_setting_of_a_file_is_asked_of_the_kernel(tmp_path: Path) -> None:
    settings = tmp_path / "90.conf"
    settings.write_text("# why\nkernel.ostype = Other\n")
    found = _run(read_seals_command(Traces(sysctl_files=(str(settings),))))
    assert found["sysctl", "kernel.ostype"] == "Linux"
    assert ("file", str(settings)) in found


def test_a_step_that_leaves_nothing_has_no_seal() -> None:
    step = Step(stage=Stage.BASE, role="base", phase="preflight", variables={})
    assert seal_command(step, "0" * 64) == ""


def test_a_step_that_is_done_again_does_not_seal_what_a_hand_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "DIRECTORY", str(tmp_path))
    step = Step(stage=Stage.BASE, role="base", phase="configure", variables={})
    digests = {"same": "0" * 64, "other": "1" * 64}
    seal = tmp_path / step.key
    monkeypatch.setattr(
        seals,
        "read_seals_command",
        lambda _: "printf 'sysctl 77 net.a\\nfile b /f\\nmount tmpfs /home\\n'",
    )
    before = "sysctl 4096 net.a\nfile a /f\nlink up,1500, eth9\n"

    seal.write_text(f"digest {digests['same']} stamp\n{before}")
    subprocess.run(["sh", "-c", seal_command(step, digests["same"])], check=True)
    assert seal.read_text().splitlines()[1:] == [
        "sysctl 4096 net.a", "link up,1500, eth9", "file b /f",
    ]  # fmt: skip

    subprocess.run(["sh", "-c", seal_command(step, digests["other"])], check=True)
    assert seal.read_text().splitlines()[1:] == [
        "sysctl 77 net.a",
        "file b /f",
        "mount tmpfs /home",
    ]


def test_a_role_that_ends_takes_its_seals_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "DIRECTORY", str(tmp_path))
    for name in ("wireguard.install", "wireguard.configure", "base.configure"):
        (tmp_path / name).write_text("digest 0 stamp\n")
    step = Step(stage=Stage.BASE, role="wireguard", phase="remove", variables={})
    subprocess.run(["sh", "-c", seal_command(step, "0" * 64)], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"wireguard.install", "base.configure"}


@pytest.mark.parametrize("role", ROLES)
def test_no_seal_looks_like_a_template_of_ansible(role: str) -> None:
    for phase in phase_traces(role):
        step = Step(stage=Stage.BASE, role=role, phase=phase, variables={})  # type: ignore[arg-type]  # a phase
        command = seal_command(step, "0" * 64)
        assert not re.search(r"\{\{|\{%|\{#", command)
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_mounts_come_from_the_variables_of_the_step() -> None:
    step = Step(stage=Stage.STORAGE, role="nfs", phase="join",
                variables={"nfs_mounts": [{"path": "/home"}, {"path": "/data"}]})  # fmt: skip
    assert traces_of(step).mounts == ("/data", "/home")


def test_many_steps_are_asked_as_one() -> None:
    every = merged([Traces(files=("/b",), links=True), Traces(files=("/a", "/b"))])
    assert (every.files, every.links, every.kernel) == (("/a", "/b"), True, False)


@pytest.mark.parametrize("role", ROLES)
def test_what_a_role_says_is_plain_data(role: str) -> None:
    text = (role_path(role) / "meta" / "traces.yml").read_text(encoding="utf-8")
    assert isinstance(yaml.safe_load(text), dict)
