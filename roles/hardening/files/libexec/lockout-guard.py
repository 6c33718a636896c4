#!/usr/bin/python3
"""Apply the SSH server's rules and the firewall with an automatic rollback.

Unless "keep" is called over a new login in time, all is rolled back.

  lockout-guard.py try SECONDS   apply the files in /etc/gcluster/hardening/new
  lockout-guard.py keep          it works: no rollback, and it stays after a restart, too
  lockout-guard.py back          roll back
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path("/etc/gcluster/hardening")
UNIT = "gcluster-lockout-guard"
SSHD = Path("/etc/ssh/sshd_config.d/05-gcluster-hardening.conf")
RULES = FOLDER / "firewall.nft"
NEW, BEFORE, ON_TRIAL = FOLDER / "new", FOLDER / "before", FOLDER / "on-trial"


def main() -> None:
    """Run the given verb, one process at a time."""
    words = sys.argv[1:]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        # "keep" and "back" may come at the same moment: the first one decides.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if words[:1] == ["try"] and words[1:] and words[1].isdecimal():
                begin_trial(words[1])
            elif words == ["keep"]:
                keep()
            elif words == ["back"]:
                go_back()
            else:
                print(__doc__, file=sys.stderr)
                sys.exit(64)
        except subprocess.CalledProcessError as failed:
            sys.exit(f"{failed.cmd[0]} ended with {failed.returncode}")


def begin_trial(seconds: str) -> None:
    """Take the new rules over, and have them put back after some time."""
    if (NEW / RULES.name).exists():  # tried before anything is touched
        run("nft", "--check", "--file", NEW / RULES.name)
    attempt("systemctl", "stop", f"{UNIT}.timer")
    if not ON_TRIAL.exists():
        # After a trial that was cut off, what lies in BEFORE is still the last state that was kept.
        shutil.rmtree(BEFORE, ignore_errors=True)
        BEFORE.mkdir(mode=0o700)
        put(SSHD, BEFORE / "sshd.conf")
        put(RULES, BEFORE / RULES.name)
    ON_TRIAL.touch()
    attempt("systemctl", "reset-failed", f"{UNIT}.service")
    later = (f"--unit={UNIT}", f"--on-active={seconds}")
    run("systemd-run", "--quiet", "--collect", *later, Path(__file__).resolve(), "back")
    put(NEW / "sshd.conf", SSHD)
    put(NEW / RULES.name, RULES)
    reload_sshd()
    if RULES.exists():
        run("nft", "--file", RULES)
    else:
        attempt("nft", "delete", "table", "inet", "gcluster")


def keep() -> None:
    """End the trial: what is there stays."""
    if not ON_TRIAL.exists():
        sys.exit("nothing is on trial: the rules would have locked people out and were put back")
    ON_TRIAL.unlink()
    attempt("systemctl", "stop", f"{UNIT}.timer")


def go_back() -> None:
    """End the trial: what was there before comes back."""
    if not ON_TRIAL.exists():
        return
    put(BEFORE / "sshd.conf", SSHD)
    put(BEFORE / RULES.name, RULES)
    attempt("nft", "delete", "table", "inet", "gcluster")
    if RULES.exists():
        run("nft", "--file", RULES)
    reload_sshd()
    ON_TRIAL.unlink()


def reload_sshd() -> None:
    """Reload the SSH server under the name that the distribution gives it.

    It reads nothing that it finds wrong.
    """
    run("/usr/sbin/sshd", "-t")
    for name in ("sshd.service", "ssh.service"):
        if attempt("systemctl", "is-active", "--quiet", name):
            run("systemctl", "reload", name)


def put(source: Path, target: Path) -> None:
    """Copy a file, or that there is none."""
    if source.exists():
        run("cp", "-p", source, target)
    else:
        target.unlink(missing_ok=True)


def run(*command: str | Path) -> None:
    """Run a program; raises where it fails."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def attempt(*command: str) -> bool:
    """Run a program that may fail; return whether it didn't."""
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


if __name__ == "__main__":
    main()
