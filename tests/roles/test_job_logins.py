"""What becomes of sshd's PAM stack, as the distributions ship it, and how it comes back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/pam_slurm_adopt/files/libexec/job-logins.py"
DEBIAN = """\
@include common-auth
account    required     pam_nologin.so
@include common-account
session    required     pam_loginuid.so
@include common-session
session    required     pam_limits.so
@include common-password
"""
DEBIAN_SESSION = """\
session [default=1] pam_permit.so
session requisite pam_deny.so
session required pam_permit.so
session required pam_unix.so
session optional pam_systemd.so
"""
# Of openssh-server and authselect's profile sssd on EL 9.
EL = """\
#%PAM-1.0
auth       substack     password-auth
auth       include      postlogin
account    required     pam_sepermit.so
account    required     pam_nologin.so
account    include      password-auth
password   include      password-auth
session    required     pam_loginuid.so
session    include      password-auth
session    include      postlogin
"""
EL_SESSION = """\
auth        required      pam_env.so
account     sufficient    pam_localuser.so
session     required      pam_limits.so
-session    optional      pam_systemd.so
session     required      pam_unix.so
"""
FAMILIES = {
    "debian": (DEBIAN, "common-session", DEBIAN_SESSION),
    "el": (EL, "password-auth", EL_SESSION),
}


class Host:
    """A host's PAM files, and a double of systemd."""

    def __init__(self, folder: Path, family: str) -> None:
        """Lay out the files of a distribution's family."""
        sshd, name, session = FAMILIES[family]
        self.root = folder / "root"
        self.pam = self.root / "etc/pam.d"
        self.pam.mkdir(parents=True)
        (self.pam / "sshd").write_text(sshd)
        (self.pam / name).write_text(session)
        options = self.root / "etc/gcluster/job-logins/options"
        options.parent.mkdir(parents=True)
        options.write_text("action_no_jobs=deny\n")
        module = self.root / "lib/security/pam_slurm_adopt.so"
        module.parent.mkdir(parents=True)
        module.touch()
        self.module = module
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in ("systemctl", "systemd-run"):
            (self.programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {folder}/timer\n')
            (self.programs / name).chmod(0o755)
        self.timer = folder / "timer"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the program here."""
        environment = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "GCLUSTER_PAM_ROOT": str(self.root),
        }
        return subprocess.run(
            [PROGRAM, *words], env=environment, capture_output=True, text=True, check=False
        )

    @property
    def sshd(self) -> str:
        """The stack of sshd."""
        return (self.pam / "sshd").read_text()


@pytest.fixture(params=sorted(FAMILIES))
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    return Host(tmp_path, request.param)


def test_jobs_are_requested_last_behind_those_who_need_none(host: Host) -> None:
    assert host.run("try", "60").returncode == 0
    accounts = [line for line in host.sshd.splitlines() if line.startswith("account")]
    assert [line.split()[1:3] for line in accounts[-3:]] == [
        ["substack", accounts[-3].split()[2]],
        ["sufficient", "pam_access.so"],
        ["required", "pam_slurm_adopt.so"],
    ]
    assert accounts[-1].endswith("action_no_jobs=deny")


def test_a_local_user_does_not_end_the_stack_before_it(host: Host) -> None:
    host.run("try", "60")
    included = [line.split()[:2] for line in host.sshd.splitlines() if "-a" in line[:60]]
    assert ["account", "include"] not in included
    assert "@include common-account" not in host.sshd


def test_sessions_stay_in_the_job_and_other_lines_keep_their_places(host: Host) -> None:
    host.run("try", "60")
    lines = (host.pam / "gcluster-session").read_text().splitlines()
    assert not [line for line in lines if "pam_systemd" in line]
    assert lines.count("session optional pam_permit.so") == 1
    assert not [line for line in lines if line.startswith(("auth", "account"))]
    assert "session include gcluster-session" in host.sshd


def test_what_is_not_kept_is_restored(host: Host) -> None:
    before = host.sshd
    host.run("try", "30")
    assert "--on-active=30" in host.timer.read_text()
    assert host.run("holds").returncode == 1
    assert host.run("back").returncode == 0
    assert host.sshd == before
    assert host.run("keep").returncode == 1


def test_what_is_kept_holds_until_it_is_changed(host: Host) -> None:
    host.run("try", "60")
    assert host.run("keep").returncode == 0
    assert host.run("holds").returncode == 0
    assert host.run("back").returncode == 0
    assert host.run("holds").returncode == 0
    (host.pam / "sshd").write_text(host.sshd.replace("pam_slurm_adopt", "pam_permit"))
    assert "is not as it should be" in host.run("holds").stderr


def test_a_second_time_changes_nothing(host: Host) -> None:
    host.run("try", "60")
    once = host.sshd
    host.run("keep")
    host.run("try", "60")
    assert host.sshd == once


def test_off_is_the_distribution_s_stack_again(host: Host) -> None:
    before = [line.split() for line in host.sshd.splitlines()]
    host.run("try", "60")
    host.run("keep")
    assert host.run("off").stdout.strip().endswith("/etc/pam.d/sshd")
    assert [line.split() for line in host.sshd.splitlines()] == before
    assert host.run("off").stdout == ""


def test_nothing_changes_where_the_module_is_not_there(host: Host) -> None:
    before = host.sshd
    host.module.unlink()
    done = host.run("try", "60")
    assert (done.returncode, "no pam_slurm_adopt.so" in done.stderr) == (1, True)
    assert host.sshd == before


def test_a_stack_that_is_not_the_distribution_s_is_left_alone(host: Host) -> None:
    (host.pam / "sshd").write_text("account required pam_permit.so\n")
    assert "includes no stack" in host.run("try", "60").stderr
    assert host.sshd == "account required pam_permit.so\n"


def test_nothing_changes_where_no_timer_can_put_it_back(host: Host) -> None:
    before = host.sshd
    (host.programs / "systemd-run").write_text("#!/bin/sh\nexit 1\n")
    assert host.run("try", "60").returncode == 1
    assert host.sshd == before
