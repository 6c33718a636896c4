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


def _run(command: str) -> dict[tuple[str, str], str]:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    rows = (re.fullmatch(r"(\w+) (.*) (\S+)", line) for line in done.stdout.splitlines())
    return {(row[1], row[3]): row[2] for row in rows if row}


@pytest.mark.parametrize("role", ROLES)
def test_every_role_reports_what_it_leaves_in_phases_that_it_has(role: str) -> None:
    answer = phase_traces(role)
    assert set(answer) <= set(PHASES)
    assert all((role_path(role) / "tasks" / f"{phase}.yml").exists() for phase in answer)
    assert answer


PLACES = re.compile(
    r"""(?:dest|path): ["']?(/[\w./@-]+)|^\s*["']?(/(?:etc|usr|opt)/[\w./@-]+)["']?:""",
    re.MULTILINE,
)
"""What tasks and variables name as the place of a file: `dest:`, `path:`, keys of managed_files."""
NOT_LOOKED_AT = {
    "/etc/gcluster",  # a folder of many roles, whose files are looked at
    "/etc/slurm",  # the same
    "/etc/ssh/authorized_keys.d",  # its entries are looked at, all of them
    "/etc/gcluster/blobfuse2-",  # begins the name of one for each mount, which is looked at
    "/etc/systemd/system/object-",  # the same
    "/etc/ssl/certs/ca-certificates.crt",  # the distribution's, only read
    "/run/gcluster-firmware.json",  # a report that goes with the next restart
    "/usr/bin/nvidia-uninstall",  # the vendor's, only looked for
    "/usr/libexec/gcluster",  # a folder of many roles, whose programs are looked at
    "/usr/local/bin/gcluster-stage",  # a link to a program that is looked at
    "/usr/local/sbin/node-health",  # the same
    "/usr/local/src/gcluster",  # sources of what is built and then looked at
    "/var/lib/gcluster/slurm-packages",  # its list of checksums is looked at
}


@pytest.mark.parametrize("role", ROLES)
def test_every_file_that_a_role_writes_is_checked(role: str) -> None:
    """At a fixed path, or a copy of the role's own."""
    written: set[str] = set()
    for folder in ("tasks", "vars"):
        for path in sorted((role_path(role) / folder).rglob("*.yml")):
            text = path.read_text(encoding="utf-8")
            written |= {one or other for one, other in PLACES.findall(text)}
    systemd = role_path(role) / "files" / "systemd"
    units = (path for path in systemd.rglob("*") if path.is_file())
    written |= {f"/etc/systemd/system/{path.relative_to(systemd)}" for path in units}
    looked_at = NOT_LOOKED_AT.copy()
    for phase in phase_traces(role):
        traces = traces_of(Step(stage=Stage.BASE, role=role, phase=phase, variables={}))  # type: ignore[arg-type]  # a phase
        looked_at |= {*traces.paths, *traces.blocks, *traces.mounts}
    assert {path for path in written if not path.endswith("/")} - looked_at == set()


def test_what_a_role_copies_is_checked_where_it_puts_it() -> None:
    copied = traces_of(Step(stage=Stage.BASE, role="slurm", phase="install", variables={})).files
    assert "/usr/local/libexec/gcluster/slurmctld-state.py" in copied
    assert "/etc/systemd/system/slurmctld.service.d/gcluster.conf" in copied


def test_users_are_checked_by_their_accounts_and_their_keys() -> None:
    step = Step(stage=Stage.BASE, role="base", phase="configure",
                variables={"base_users": [{"name": "root"}, {"name": "nobody-here"}]})  # fmt: skip
    traces = traces_of(step)
    assert traces.users == ("nobody-here", "root")
    assert "/etc/ssh/authorized_keys.d/root" in traces.files
    found = _run(read_seals_command(Traces(users=traces.users)))
    assert found["user", "root"].startswith("0,0,/bin/")
    assert ("user", "nobody-here") not in found


def test_strangers_in_a_watched_folder_are_reported_and_what_the_role_writes_there_is_not(
    tmp_path: Path,
) -> None:
    for name in ("ours", "theirs", "with a space"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    traces = Traces(files=(f"{tmp_path}/ours",), watched=(f"{tmp_path}/*", "/no/such/file"))
    entries = {name for kind, name in _run(read_seals_command(traces)) if kind == "entry"}
    assert entries == {f"{tmp_path}/theirs", f"{tmp_path}/with\\040a\\040space"}


def test_who_is_root_is_reported() -> None:
    assert _run(read_seals_command(Traces(accounts=True)))["account", "root"].startswith("0,/")


def test_files_are_reported_by_hash_and_mode_and_what_is_missing_not_at_all(tmp_path: Path) -> None:
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


def test_mounts_packages_settings_and_links_are_reported() -> None:
    found = _run(read_seals_command(Traces(mounts=("/proc", "/none"), packages=("bash", "no-such"),
                                     sysctls=("kernel.ostype",), links=True)))  # fmt: skip
    assert found["mount", "/proc"].startswith("proc,proc,")
    assert ("mount", "/none") not in found
    assert found["package", "bash"]
    assert found["sysctl", "kernel.ostype"] == "Linux"
    assert not [name for kind, name in found if kind == "link" and name == "lo"]


def test_each_setting_of_a_file_is_read_from_the_kernel(tmp_path: Path) -> None:
    settings = tmp_path / "90.conf"
    settings.write_text("# why\nkernel.ostype = Other\n")
    found = _run(read_seals_command(Traces(sysctl_files=(str(settings),))))
    assert found["sysctl", "kernel.ostype"] == "Linux"
    assert ("file", str(settings)) in found


def test_a_step_that_leaves_nothing_has_no_seal() -> None:
    step = Step(stage=Stage.BASE, role="base", phase="preflight", variables={})
    assert seal_command(step, "0" * 64) == ""


def test_a_step_that_is_done_again_does_not_seal_manual_changes_meanwhile(
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


def test_a_strangers_entry_is_sealed_by_the_first_seal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever makes the step run again; people of the spec come and go with it."""
    monkeypatch.setattr(seals, "DIRECTORY", str(tmp_path))
    monkeypatch.setattr(
        seals,
        "read_seals_command",
        lambda _: "printf 'entry b /x\\naccount 7 bob\\naccount 8 eve\\nfile c /f\\n'",
    )
    step = Step(stage=Stage.BASE, role="base", phase="configure",
                variables={"base_users": [{"name": "bob"}]})  # fmt: skip
    seal = tmp_path / step.key
    seal.write_text(f"digest {'0' * 64} stamp\nfile a /f\nentry a /etc/sudoers\naccount 0 root\n")
    subprocess.run(["sh", "-c", seal_command(step, "1" * 64)], check=True)
    assert seal.read_text().splitlines() == [
        f"digest {'1' * 64} stamp", "entry a /etc/sudoers", "account 0 root", "account 7 bob",
        "file c /f",
    ]  # fmt: skip

    seal.write_text(f"digest {'0' * 64} stamp\nfile a /f\n")
    subprocess.run(["sh", "-c", seal_command(step, "1" * 64)], check=True)
    assert "entry b /x" in seal.read_text().splitlines(), "its seal knew no entries"


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
def test_no_seal_resembles_a_template_of_ansible(role: str) -> None:
    for phase in phase_traces(role):
        step = Step(stage=Stage.BASE, role=role, phase=phase, variables={})  # type: ignore[arg-type]  # a phase
        command = seal_command(step, "0" * 64)
        assert not re.search(r"\{\{|\{%|\{#", command)
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_mounts_come_from_the_variables_of_the_step() -> None:
    step = Step(stage=Stage.STORAGE, role="nfs", phase="join",
                variables={"nfs_mounts": [{"path": "/home"}, {"path": "/data"}]})  # fmt: skip
    assert traces_of(step).mounts == ("/data", "/home")


def test_many_steps_are_queried_as_one() -> None:
    every = merged([Traces(files=("/b",), links=True), Traces(files=("/a", "/b"))])
    assert (every.files, every.links, every.kernel) == (("/a", "/b"), True, False)


@pytest.mark.parametrize("role", ROLES)
def test_what_a_role_has_is_plain_data(role: str) -> None:
    text = (role_path(role) / "meta" / "traces.yml").read_text(encoding="utf-8")
    assert isinstance(yaml.safe_load(text), dict)
