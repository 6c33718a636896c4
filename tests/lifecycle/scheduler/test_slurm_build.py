"""Slurm's packages are built where they are lacking, brought to every mirror, and vouched for.

Shell lines run on this machine as they would on a node; SSH and systemd are doubles.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from tests.shell_double import write_double

from gcluster.inventory.compile import CompiledCluster, Group, Step
from gcluster.inventory.compile.steps import Stage
from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.cluster.progress import Finding, Progress, StageFinished, StageProgress
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession
from gcluster.lifecycle.scheduler import slurm_build
from gcluster.lifecycle.scheduler.slurm_build import PLATFORM, build_slurm, needed_builds

KEY = "25.11.8-34ace13f8101-1"
MUNGE = b"the cluster's MUNGE key"
PROGRAM = """#!/bin/sh
mkdir -p "$4"
echo "== building slurm-smd" > "$4/log"
echo "$1" >> BUILT
if [ -e BROKEN ]; then
  echo "Slurm $1 was not built on here: building slurm-smd" > "$4/FAILED"
  echo "cc1: no space" >> "$4/FAILED"
  exit 1
fi
echo content > "$4/slurm-smd.deb"
(cd "$4" && sha256sum slurm-smd.deb > SHA256SUMS)
"""


def host(name: str, role: Any = "compute") -> Host:
    """Return a host, its pool named as it is without a number."""
    return Host(
        name=name,
        site="here",
        pool=name.rstrip("12"),
        role=role,
        machine=None,
        address="10.0.0.1",
        ssh=SshTarget(user="root"),
    )


HEAD, OTHER, LOGIN = (
    host("head1", "controller"),
    host("head2", "controller"),
    host("login", "login"),
)
GPUS = (host("gpu1"), host("gpu2"))


def compiled(*pools: str) -> CompiledCluster:
    """Return a cluster whose pools take a Slurm that is built."""
    steps = tuple(
        Step(stage=Stage.SCHEDULER, role="slurm_packages", phase=phase, variables=variables)
        for phase, variables in (
            (
                "preflight",
                {"slurm_packages_url": "http://x/y", "slurm_packages_checksum": "sha256:0"},
            ),
            (
                "install",
                {
                    "slurm_packages_version": "25.11.8",
                    "slurm_packages_mirror": f"http://10.0.0.1:8480/slurm/{KEY}",
                },
            ),
        )
    )
    groups = tuple(Group(name=pool, hosts=(), steps=cast("Any", steps)) for pool in pools)
    return CompiledCluster(cluster="demo", groups=groups)


class Here:
    """Runs every host's commands on this machine, in one folder."""

    def __init__(self, folder: Path) -> None:
        """Put the doubles of systemd in place."""
        self.folder = folder
        (folder / "bin").mkdir()
        for name, script in {
            "systemctl": "echo inactive; exit 3",
            "systemd-run": 'while [ "${1#/}" = "$1" ]; do shift; done; "$@" 2>/dev/null || :',
        }.items():
            write_double(folder / "bin" / name, script)

    def sh(self, command: str, content: Iterable[bytes] = ()) -> SshResult:
        """Run a line."""
        done = subprocess.run(
            ["sh", "-c", command],
            input=b"".join(content),
            capture_output=True,
            check=False,
            cwd=self.folder,
            env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}"},
        )
        return SshResult(
            returncode=done.returncode, stdout=done.stdout.decode(), stderr=done.stderr.decode()
        )

    def run(
        self,
        _: Host,
        command: str,
        *,
        stdin: str = "",
        timeout_s: float = 60,  # noqa: ARG002  # as SSH's
    ) -> SshResult:
        """Run a command; every node says it is of Debian 13."""
        if command == PLATFORM:
            return SshResult(returncode=0, stdout="debian-13-x86_64\n", stderr="")
        return self.sh(command, [stdin.encode()])

    def run_many(self, hosts: Iterable[Host], command: str) -> dict[str, SshResult]:
        """Run a command on several."""
        return {each.name: self.run(each, command) for each in hosts}

    def stream(
        self,
        _: Host,
        command: str,
        take: Callable[[str], None],
        *,
        timeout_s: float,  # noqa: ARG002  # as SSH's
    ) -> SshResult:
        """Hand over the output line by line."""
        answer = self.sh(command)
        for line in answer.stdout.splitlines():
            take(line)
        return answer


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """This machine as every node: all of them share one mirror."""
    program = tmp_path / "role/files/libexec/slurm-build.py"
    program.parent.mkdir(parents=True)
    program.write_text(
        PROGRAM.replace("BUILT", f"{tmp_path}/built").replace("BROKEN", f"{tmp_path}/broken")
    )
    monkeypatch.setattr(slurm_build, "MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setattr(slurm_build, "WORK", str(tmp_path / "work"))
    monkeypatch.setattr(
        slurm_build,
        "_THERE",
        f"cd {tmp_path}/mirror 2>/dev/null && ls -d */*/SHA256SUMS 2>/dev/null; true",
    )
    monkeypatch.setattr(slurm_build, "role_path", lambda _: tmp_path / "role")
    monkeypatch.setattr(slurm_build, "_POLL_INTERVAL_S", 0.01)
    session = Here(tmp_path)
    monkeypatch.setattr(
        slurm_build, "feed", lambda _s, _h, command, content, **_: session.sh(command, content)
    )
    return session


def build(session: Here, *hosts: Host) -> list[Progress]:
    """Build to the end; return the messages."""
    reported: list[Progress] = []
    pools = dict.fromkeys(each.pool for each in hosts)
    thread = build_slurm(
        compiled(*pools), hosts, cast("SshSession", session), reported.append, munge_key=MUNGE
    )
    if thread is not None:
        thread.join()
    return reported


def test_packages_are_built_once_and_vouched_for(here: Here) -> None:
    reported = build(here, HEAD, *GPUS)
    folder = here.folder / "mirror" / KEY / "debian-13-x86_64"
    sums = (folder / "SHA256SUMS").read_bytes()
    message = f"{KEY}/debian-13-x86_64\n".encode() + sums
    code = hmac.new(MUNGE, message, hashlib.sha256).hexdigest()
    assert (folder / "SHA256SUMS.hmac").read_text() == code
    assert (folder / "slurm-smd.deb").read_text() == "content\n"
    assert [each.ok for each in reported if isinstance(each, StageFinished)] == [True]
    assert build(here, HEAD, *GPUS) == []
    assert (here.folder / "built").read_text() == "25.11.8\n"


def test_a_build_that_fails_is_reported_with_its_step_and_last_lines_and_to_nodes_that_wait(
    here: Here,
) -> None:
    (here.folder / "broken").touch()
    reported = build(here, HEAD)
    (finding,) = [each.diagnostic for each in reported if isinstance(each, Finding)]
    assert finding.code == "GC1191"
    assert finding.summary.startswith(
        "Slurm 25.11.8 has no packages for debian-13-x86_64: head1 failed at building slurm-smd"
    )
    assert finding.detail == "cc1: no space"
    failed = here.folder / "mirror" / KEY / "debian-13-x86_64/FAILED"
    assert "cc1: no space" in failed.read_text()

    (here.folder / "broken").unlink()
    reported = build(here, HEAD)
    assert [each.ok for each in reported if isinstance(each, StageFinished)] == [True]
    assert not failed.exists()


def test_a_build_on_a_busy_node_is_waited_for(here: Here) -> None:
    """Its program starts late, and systemd fails to answer once."""
    running, calls = here.folder / "running", here.folder / "asked"
    (here.folder / "bin/systemd-run").write_text(
        f"""#!/bin/sh
while [ "${{1#/}}" = "$1" ]; do shift; done
touch {running}
(sleep 0.3; "$@"; rm {running}) >/dev/null 2>&1 &
"""
    )
    (here.folder / "bin/systemctl").write_text(
        f"""#!/bin/sh
if [ -e {running} ] && [ ! -e {calls} ]; then touch {calls}; exit 1; fi
if [ -e {running} ]; then echo active; else echo inactive; exit 3; fi
"""
    )

    reported = build(here, HEAD)

    assert calls.exists()
    assert [each.diagnostic for each in reported if isinstance(each, Finding)] == []
    assert [each.ok for each in reported if isinstance(each, StageFinished)] == [True]


def test_a_build_that_was_killed_is_reported_as_ended(here: Here) -> None:
    (here.folder / "bin/systemd-run").write_text("#!/bin/sh\n")

    reported = build(here, HEAD)

    (finding,) = [each.diagnostic for each in reported if isinstance(each, Finding)]
    assert "the build ended on head1 without a result" in finding.summary


def test_a_controller_that_comes_later_gets_them_from_the_one_that_has_them(here: Here) -> None:
    build(here, HEAD)
    reported = build(here, HEAD, OTHER)
    assert not [each for each in reported if isinstance(each, StageProgress)]
    assert (here.folder / "built").read_text() == "25.11.8\n"


def test_controllers_build_first_and_nodes_that_run_jobs_last() -> None:
    platforms = dict.fromkeys(("head", "login", "gpu"), "debian-13-x86_64")
    platforms["gpu"] = "ubuntu-22.04-aarch64"
    hosts = (*GPUS, LOGIN, HEAD)
    found = needed_builds(compiled("head", "login", "gpu"), hosts, platforms, frozenset({"gpu1"}))
    assert {each.platform: each.hosts[0].name for each in found} == {
        "debian-13-x86_64": "head1",
        "ubuntu-22.04-aarch64": "gpu2",
    }


def test_a_pool_of_which_nothing_is_known_yet_waits() -> None:
    assert needed_builds(compiled("gpu"), GPUS, {}, frozenset()) == ()


def test_another_key_vouches_for_what_is_there(here: Here) -> None:
    build(here, HEAD)
    slurm_build.vouch_for_packages(cast("SshSession", here), [HEAD], b"another")
    folder = here.folder / "mirror" / KEY / "debian-13-x86_64"
    message = f"{KEY}/debian-13-x86_64\n".encode() + (folder / "SHA256SUMS").read_bytes()
    code = hmac.new(b"another", message, hashlib.sha256).hexdigest()
    assert (folder / "SHA256SUMS.hmac").read_text() == code
