#!/usr/bin/env python3
"""Allow SSH logins only with a job here, with an automatic rollback without "keep".

job-logins.py holds         exit 0: sshd's PAM stack is as wanted; 1: not, the reason on stderr
job-logins.py try SECONDS   apply it; it is rolled back after SECONDS without "keep"
job-logins.py keep          it works: no rollback
job-logins.py back          roll back
job-logins.py off           the distribution's stack: logins need no job; prints changes

Of /etc/pam.d/sshd three things are changed. What it includes for `account` becomes a substack, for
a module there that suffices (pam_localuser) would end all of it. Behind it come those who need no
job, then pam_slurm_adopt. And its sessions are of a copy without pam_systemd, which would take a
process out of the job's cgroup again.
"""

from __future__ import annotations

import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(os.environ.get("GCLUSTER_PAM_ROOT", "/"))
PAM = ROOT / "etc/pam.d"
FOLDER = ROOT / "etc/gcluster/job-logins"
UNIT = "gcluster-job-logins"
OPTIONS = FOLDER / "options"
SESSION = "gcluster-session"
BEGIN, END = "# BEGIN gcluster: people with a job", "# END gcluster"
EXEMPT_FILE = "/etc/security/gcluster-jobs.conf"
STACKS = {"common-account": "common-session", "password-auth": "password-auth"}
INCLUDE = re.compile(r"^(?:@include\s+(\S+)|(\w+)\s+(?:include|substack)\s+(\S+))\s*$")


class StackError(Exception):
    """Why the stack can't be what it should."""


def included(line: str) -> tuple[str | None, str | None]:
    """Return what a line includes and for what ("" for Debian's @include)."""
    found = INCLUDE.match(line.strip())
    if not found:
        return None, None
    return found[1] or found[3], found[2] or ""


def without_block(text: str) -> str:
    """Return the text as it was before our block came in."""
    return re.sub(rf"{re.escape(BEGIN)}\n.*?{re.escape(END)}\n", "", text, flags=re.DOTALL)


def stack(text: str, options: str) -> tuple[str, str]:
    """Return sshd's stack that requires jobs of users, and the name of its session stack."""
    lines = without_block(text).splitlines()
    account = session = last = None
    for number, line in enumerate(lines):
        name, what = included(line)
        of_accounts = line.split()[:1] in (["account"], ["-account"])
        if name in STACKS and what in ("", "account") and (what or name != STACKS[name]):
            account, lines[number], of_accounts = name, "account substack " + name, True
        if of_accounts:
            last = number
    for number, line in enumerate(lines):
        name, what = included(line)
        if account and name in (STACKS[account], SESSION) and what in ("", "session"):
            session, lines[number] = STACKS[account], "session include " + SESSION
    if account is None or session is None or last is None:
        raise StackError(
            f"{PAM / 'sshd'} includes no stack of the distribution's for accounts and sessions"
        )
    block = [
        BEGIN,
        f"account sufficient pam_access.so nodefgroup listsep=, accessfile={EXEMPT_FILE}",
        "account required pam_slurm_adopt.so " + options,
        END,
    ]
    lines[last + 1 : last + 1] = block
    return "\n".join(lines) + "\n", session


def plain(text: str) -> str:
    """Return sshd's stack as the distribution has it."""
    lines = without_block(text).splitlines()
    account = None
    for number, line in enumerate(lines):
        name, what = included(line)
        debian = name == "common-account"
        if name in STACKS and what == "account" and " substack " in line:
            account, lines[number] = (
                name,
                "@include common-account" if debian else "account include " + name,
            )
        elif name == SESSION and account:
            session = STACKS[account]
            lines[number] = (
                "@include " + session if session != account else "session include " + session
            )
    return "\n".join(lines) + "\n"


def sessions(text: str) -> str:
    """Return a session stack that leaves a process where it is; other lines keep their numbers."""
    kept = []
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] not in ("session", "-session"):
            continue
        kept.append("session optional pam_permit.so" if "pam_systemd" in line else line)
    return "\n".join(["# Of sshd's sessions; written by gcluster.", *kept]) + "\n"


def wanted() -> dict[pathlib.Path, str]:
    """Return path -> text of the two files."""
    if not any(
        ROOT.glob("**/security/pam_slurm_adopt.so") if pathlib.Path("/") != ROOT else modules()
    ):
        raise StackError("there is no pam_slurm_adopt.so")
    sshd, session = stack((PAM / "sshd").read_text(), OPTIONS.read_text().strip())
    return {PAM / "sshd": sshd, PAM / SESSION: sessions((PAM / session).read_text())}


def modules() -> Iterator[pathlib.Path]:
    """Yield the module where distributions have it."""
    for folder in ("/lib/security", "/lib64/security", "/usr/lib64/security", "/usr/lib/security"):
        yield from pathlib.Path(folder).glob("pam_slurm_adopt.so")
    for folder in ("/lib", "/usr/lib"):
        yield from pathlib.Path(folder).glob("*-linux-gnu/security/pam_slurm_adopt.so")


def write(path: pathlib.Path, text: str) -> None:
    """Replace a file as a whole."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.chmod(0o644)
    new.replace(path)


def holds() -> None:
    """Return whether both files are as wanted."""
    if (FOLDER / "on-trial").exists():
        raise StackError("sshd's stack is still on trial")
    for path, text in wanted().items():
        if not path.exists() or path.read_text() != text:
            raise StackError(f"{path} is not as it should be; configure this role again")


def attempt(seconds: str) -> None:
    """Put both files in place; a timer puts them back."""
    files = wanted()
    trial, before = FOLDER / "on-trial", FOLDER / "before"
    if not trial.exists():  # of a trial that was cut off the last state that was kept stays
        shutil.rmtree(before, ignore_errors=True)
        before.mkdir(mode=0o700)
        shutil.copy2(PAM / "sshd", before / "sshd")
    trial.touch()
    timer(["systemctl", "stop", UNIT + ".timer"], check=False)
    timer(["systemctl", "reset-failed", UNIT + ".service"], check=False)
    timer(
        [
            "systemd-run",
            "--quiet",
            "--collect",
            "--unit=" + UNIT,
            "--on-active=" + seconds,
            str(pathlib.Path(__file__).resolve()),
            "back",
        ],
        check=True,
    )
    # The session stack first: sshd's names it.
    for path in (PAM / SESSION, PAM / "sshd"):
        write(path, files[path])


def off() -> None:
    """Make sshd require no jobs."""
    had = (PAM / "sshd").read_text()
    if plain(had) != had:
        write(PAM / "sshd", plain(had))
        print(PAM / "sshd")


def timer(command: list[str], *, check: bool) -> None:
    """Run a command about the timer; what isn't there can't be stopped."""
    subprocess.run(command, check=check, stderr=None if check else subprocess.DEVNULL)


def keep() -> None:
    """It works."""
    if not (FOLDER / "on-trial").exists():
        raise StackError(
            "nothing is on trial: the stack would have locked people out and was put back"
        )
    (FOLDER / "on-trial").unlink()
    timer(["systemctl", "stop", UNIT + ".timer"], check=False)


def back() -> None:
    """Put sshd's stack back."""
    if (FOLDER / "on-trial").exists():
        write(PAM / "sshd", (FOLDER / "before/sshd").read_text())
        (FOLDER / "on-trial").unlink()


def main(words: list[str]) -> int:
    """Run the given verb, one process at a time: "keep" and "back" may come concurrently."""
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if words[:1] == ["try"] and words[1:] and not words[2:]:
                attempt(words[1])
            elif len(words) == 1 and words[0] in ("holds", "keep", "back", "off"):
                {"holds": holds, "keep": keep, "back": back, "off": off}[words[0]]()
            else:
                print(__doc__, file=sys.stderr)
                return 64
        except (StackError, OSError, subprocess.CalledProcessError) as problem:
            print(problem, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
