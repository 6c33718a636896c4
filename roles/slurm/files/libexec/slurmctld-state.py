#!/usr/bin/python3
"""Save and restore slurmctld's StateSaveLocation: queue, reservations, drained nodes.

usage: slurmctld-state.py VERB

  save      print it as base64 of a tar archive; slurmctld is stopped meanwhile, so that
        all files are consistent, and jobs continue
  replace   start slurmctld with the archive at SEED, and the accounts with theirs
        where the database is here; the old state is kept next to it, and restored
        where that fails
  take      before every start of slurmctld: unpack SEED where there is no state yet
  move TO [MOUNT]   carry the queue to another folder that has none, or one that was
        carried away from there before; slurmctld is stopped. MOUNT must be
        mounted
  before-upgrade    before every start of slurmctld: where it is of another version
        than at its last start, keep StateSaveLocation and /etc/slurm in
        /var/backups/gcluster/slurmctld
  check MOUNT       fail where the state is meant to be shared and its file system
        isn't there; on any but the first controller wait until one has written the
        cluster's id there

The GCLUSTER_ variables replace files in tests.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

SEED = Path("/var/lib/gcluster/slurm-state.tar.gz")
OPEN = Path("/var/lib/gcluster/slurm-state-replaced")
"""Is there from the beginning of `replace` until slurmctld answers."""
ACCOUNTS = Path("/var/lib/gcluster/slurmdbd-replacement.sql.gz")
DATABASE = Path(__file__).with_name("slurmdbd-restore.py")
"""There where role slurmdbd is."""
LEFT = "gcluster-carried-away"
"""Marks a folder whose queue was carried elsewhere."""
CONF = Path(os.environ.get("GCLUSTER_SLURM_CONF", "/etc/slurm/slurm.conf"))
SEEN = Path(os.environ.get("GCLUSTER_SLURMCTLD_SEEN", "/var/lib/gcluster/slurmctld.version"))
KEPT = Path(os.environ.get("GCLUSTER_SLURMCTLD_BACKUPS", "/var/backups/gcluster/slurmctld"))
ANSWER_LIMIT_S = 60
NAME_LIMIT_S = float(os.environ.get("GCLUSTER_SLURM_NAME_LIMIT", "60"))
BLOCK = 57 * 1024
"""Bytes that are read at once: whole lines of base64."""


class RefusedError(Exception):
    """Why it isn't done."""


def main() -> None:
    """Run the verb."""
    verb, words = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    takes = VERBS.get(verb)
    if takes is None or len(words) not in takes[1]:
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    if verb == "move" and not CONF.exists():
        return
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)
    try:
        takes[0](state_folder(), *words)
    except (RefusedError, OSError) as why:
        sys.exit(str(why))
    except subprocess.CalledProcessError:
        sys.exit(1)  # it has printed why


def stop(*_: object) -> NoReturn:
    """End by an exception, so that slurmctld is started again."""
    sys.exit(1)


def state_folder() -> Path:
    """Return StateSaveLocation."""
    found = re.search(r"(?m)^StateSaveLocation=(.+)$", CONF.read_text())
    if found is None:
        raise RefusedError(f"{CONF} names no StateSaveLocation")
    return Path(found[1])


def save(state: Path) -> None:
    """Print the archive."""
    command = ["tar", "--create", "--gzip", f"--directory={state}", "--exclude=./heartbeat*", "."]
    with contextlib.ExitStack() as stack:
        if is_active():
            stack.enter_context(slurmctld_stopped())
        query_database("dump")  # of the same moment as the queue
        tar = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        assert tar.stdout is not None  # noqa: S101  # it is a pipe
        while block := tar.stdout.read(BLOCK):
            sys.stdout.buffer.write(base64.encodebytes(block))
        sys.stdout.buffer.flush()
        if tar.wait() != 0:
            raise RefusedError(f"{state} could not be read whole")


def replace(state: Path) -> None:
    """Have slurmctld take the archive, and the database its dump; both, or none."""
    if not SEED.is_file():
        raise RefusedError(f"there is no {SEED}")
    if OPEN.exists():  # an earlier one was cut off
        aside = [(new, new.with_name(f"{new.name}.kept")) for new in (SEED, ACCOUNTS)]
        for new, kept in aside:
            rename_where_it_is(new, kept)
        go_back(state)
        for new, kept in aside:
            rename_where_it_is(kept, new)
    try:
        reset_state(state)
        if ACCOUNTS.is_file():
            query_database("replace")
        run("systemctl", "start", "slurmctld")
        wait_for_answer()
    except (RefusedError, OSError, subprocess.CalledProcessError, SystemExit) as why:
        if isinstance(why, (RefusedError, OSError)):
            print(why, file=sys.stderr)
        go_back(state)
        print("everything is as it was before", file=sys.stderr)
        run("systemctl", "start", "slurmctld")
        sys.exit(1)
    OPEN.unlink()
    query_database("keep")


def reset_state(state: Path) -> None:
    """Stop slurmctld and give it an empty folder; the old one is kept next to it."""
    run("systemctl", "stop", "slurmctld")
    before = sibling_folder(state, "before")
    clear(before)
    OPEN.parent.mkdir(parents=True, exist_ok=True)
    OPEN.touch()
    run("mv", "-T", state, before)
    state.mkdir()
    status = before.stat()
    state.chmod(status.st_mode & 0o7777)
    os.chown(state, status.st_uid, status.st_gid)


def go_back(state: Path) -> None:
    """Have the state of before `replace`, and the accounts that belong to it.

    Nothing of it is lost by a second time.
    """
    for new in (SEED, ACCOUNTS):
        new.unlink(missing_ok=True)
    run("systemctl", "stop", "slurmctld")
    with contextlib.suppress(subprocess.CalledProcessError):
        query_database("undo")
    before = sibling_folder(state, "before")
    if OPEN.exists() and before.is_dir():
        clear(state)
        run("mv", "-T", before, state)
    OPEN.unlink(missing_ok=True)


def query_database(verb: str) -> None:
    """Run what dumps and replaces the accounting database, where that is on this host."""
    if os.access(DATABASE, os.X_OK):
        run(DATABASE, verb)


def rename_where_it_is(path: Path, name: Path) -> None:
    """Rename a file, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        path.rename(name)


def wait_for_answer() -> None:
    """Wait until slurmctld answers, this one or another controller's."""
    until = time.monotonic() + ANSWER_LIMIT_S
    while "is UP" not in answer_of("scontrol", "ping", even_failed=True):
        if time.monotonic() >= until:
            raise RefusedError("slurmctld doesn't answer; journalctl -u slurmctld says why")
        time.sleep(0.5)


def take(state: Path) -> None:
    """Unpack the archive where there is no queue."""
    if not SEED.is_file():
        return
    if has_queue(state):
        print(f"{state} has a queue already, which stays: {SEED} is put aside", file=sys.stderr)
        SEED.rename(f"{SEED}.aside")
        return
    seed = sibling_folder(state, "seed")
    clear(seed)
    state.mkdir(parents=True, exist_ok=True)
    seed.mkdir(mode=0o700)
    # Owners as numbers may differ on another machine: everything there is slurm's.
    run("tar", "--extract", "--gzip", "--no-same-owner", "--directory", seed, "--file", SEED)
    run("chown", "-R", "slurm:", state, seed)
    forget_cluster_id(seed / "clustername")
    arrive(seed, state)
    shutil.rmtree(seed)
    SEED.unlink()


def forget_cluster_id(named: Path) -> None:
    """Make slurmctld take the cluster's id from the database.

    It does where its state has none, and refuses to start where it has another: a recreated
    database has another.
    """
    if named.is_file() and re.search(r"(?m)^AccountingStorageType=.*slurmdbd", CONF.read_text()):
        text = named.read_text()
        named.write_text(re.sub(r"(?m)\|.*$", "", text))


def move(state: Path, to: str, mount: str = "") -> None:
    """Carry the queue to another folder."""
    target = Path(to)
    if mount:
        refuse_unmounted(target, mount)
    if state == target:
        return
    if not has_queue(state):
        if not (target / LEFT).exists():
            return
        raise RefusedError(
            f"the queue went on in {state}, where none is now; {target} has the one of before:"
            f" mount {state}, or empty {target}"
        )
    if has_queue(target) and not (target / LEFT).exists():
        return
    with slurmctld_stopped(until_told=True):  # with the slurm.conf that names the new folder
        if (target / LEFT).exists():  # of days ago
            put_aside(target)
        (state / LEFT).touch()
        arrive(state, target)
    print(f"carried the queue from {state} to {target}")


def keep_before_upgrade(state: Path) -> None:
    """Keep what a new version rewrites at its start, and the old one can't read then."""
    version = re.sub(r"^[^0-9]*", "", answer_of("slurmctld", "-V").strip())
    if not version:
        raise RefusedError("slurmctld doesn't say its version")
    last = SEEN.read_text().strip() if SEEN.exists() else ""
    if version == last:
        return
    if has_queue(state):
        os.umask(0o077)
        KEPT.mkdir(parents=True, exist_ok=True)
        part, now = KEPT / ".part", time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        folders = (str(each).lstrip("/") for each in (state, CONF.parent))
        run(
            *("tar", "--create", "--gzip", "--file", part, "--exclude=heartbeat*"),
            *("--directory", "/", *folders),
        )
        part.rename(KEPT / f"{last or 'unknown'}-{now}-before-{version}.tar.gz")
    SEEN.parent.mkdir(parents=True, exist_ok=True)
    new = SEEN.with_name(f"{SEEN.name}.new")
    new.write_text(f"{version}\n")
    new.rename(SEEN)


def check(state: Path, mount: str) -> None:
    """Fail without the shared file system; wait until the first controller has written the id.

    A controller reads the cluster's id once, when it starts. One without it would not continue from
    the saved accounts where it has to take over without a database.
    """
    refuse_unmounted(state, mount)
    found = re.search(r"(?m)^SlurmctldHost=([^(\s]*)", CONF.read_text())
    first = found[1] if found else ""
    if first == socket.gethostname().partition(".")[0]:
        return
    named = state / "clustername"
    until = time.monotonic() + NAME_LIMIT_S
    while not (named.exists() and named.stat().st_size):
        if time.monotonic() >= until:
            print(
                f"{first} has not named the cluster in {state}: starting without", file=sys.stderr
            )
            return
        time.sleep(0.2)


def has_queue(folder: Path) -> bool:
    """Return whether a folder has a queue."""
    return any(folder.glob("job_state*"))


def put_aside(folder: Path) -> None:
    """Move what is in a folder to FOLDER.before."""
    before = sibling_folder(folder, "before")
    clear(before)
    before.mkdir(mode=0o700)
    run_with("mv", "-t", before, files=list(folder.iterdir()))


def arrive(source: Path, target: Path) -> None:
    """Copy a folder's files, job_state last and at once.

    It marks a complete queue, so an interrupted copy is repeated.
    """
    everything = [path for path in source.iterdir() if path.name != LEFT]
    queue = [path for path in everything if path.name.startswith("job_state")]
    arriving = target / ".arriving"
    run_with("cp", "-a", "-t", target, files=[path for path in everything if path not in queue])
    clear(arriving)
    arriving.mkdir()
    run_with("cp", "-a", "-t", arriving, files=queue)
    run_with("mv", "-t", target, files=list(arriving.iterdir()))
    arriving.rmdir()


def clear(folder: Path) -> None:
    """Remove a folder, if it is there."""
    if folder.exists():
        shutil.rmtree(folder)


def sibling_folder(folder: Path, what: str) -> Path:
    """Return the folder of a name that follows from another one's."""
    return folder.with_name(f"{folder.name}.{what}")


def refuse_unmounted(folder: Path, mount: str) -> None:
    """Fail where a folder isn't on the file system that must be mounted there."""
    on = answer_of("findmnt", "--noheadings", "--output", "TARGET", "--target", str(folder))
    if on.strip() != mount:
        raise RefusedError(
            f"{folder} is not on {mount}: another controller may be writing the state there"
        )


@contextlib.contextmanager
def slurmctld_stopped(*, until_told: bool = False) -> Iterator[None]:
    """Stop slurmctld, and start it again; with `until_told` only where something fails."""
    is_done = False
    try:
        run("systemctl", "stop", "slurmctld")
        yield
        is_done = True
    finally:
        if not (is_done and until_told):
            run("systemctl", "start", "slurmctld")


def is_active() -> bool:
    """Return whether slurmctld runs."""
    requested = ["systemctl", "is-active", "--quiet", "slurmctld"]
    return subprocess.run(requested, check=False).returncode == 0


def run(*command: str | Path) -> None:
    """Run a program; raises where it fails. What it prints is none of this program's output."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)


def run_with(*command: str | Path, files: list[Path]) -> None:
    """Run a program with files, if there are any."""
    if files:
        run(*command, *files)


def answer_of(*command: str, even_failed: bool = False) -> str:
    """Return a program's output; "" where it fails, unless that is wanted too."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    return done.stdout if even_failed or done.returncode == 0 else ""


VERBS: dict[str, tuple[Callable[..., None], tuple[int, ...]]] = {
    "save": (save, (0,)),
    "replace": (replace, (0,)),
    "take": (take, (0,)),
    "move": (move, (1, 2)),
    "before-upgrade": (keep_before_upgrade, (0,)),
    "check": (check, (1,)),
}
"""Each verb's action on StateSaveLocation, and the number of its arguments."""

if __name__ == "__main__":
    main()
