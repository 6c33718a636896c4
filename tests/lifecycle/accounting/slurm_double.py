"""Slurm's commands over a database in a file: what a program of a controller's PATH runs.

    python slurm_double.py FOLDER sacctmgr|squeue|scontrol ARGUMENT...

A file `fails` in the folder holds words; a command that has them ends with 1, a file `killed` with
a number lets so many changes pass and then ends all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "inventory/accounting"))
import slurmdb

sys.path.pop(0)


def main(folder: Path, program: str, arguments: list[str]) -> None:
    """Answer one command."""
    line = " ".join([program, *arguments])
    refused = folder / "fails"
    if refused.exists() and refused.read_text() in line:
        sys.exit(f"{program}: error: slurm_persist_conn_open: Connection refused")
    if program == "squeue":
        sys.stdout.write((folder / "jobs").read_text())
    elif program == "scontrol":
        windows(folder / "windows", arguments)
    elif "show" in arguments:
        entity = arguments[arguments.index("show") + 1]
        printed = read(folder).printed()[["qos", "associations", "users"].index(entity)]
        sys.stdout.write(f"{printed}\n")
    else:
        change(folder, (program, *arguments))


def read(folder: Path) -> slurmdb.Slurmdb:
    """Return the database."""
    kept = folder / "database"
    if not kept.exists():
        return slurmdb.Slurmdb()
    content = json.loads(kept.read_text())
    members = {(account, user): one for account, user, one in content.pop("members")}
    return slurmdb.Slurmdb(**content, members=members)


def change(folder: Path, command: tuple[str, ...]) -> None:
    """Change the database, as often as it may."""
    left = folder / "killed"
    if left.exists():
        number = int(left.read_text())
        if number == 0:
            sys.exit("sacctmgr: killed")
        left.write_text(str(number - 1))
    database = read(folder)
    database.run(command)
    kept = vars(database) | {"members": [[*key, one] for key, one in database.members.items()]}
    (folder / "database").write_text(json.dumps(kept))


def windows(kept: Path, arguments: list[str]) -> None:
    """Show, create or delete reservations; a line each, as scontrol --oneliner prints them."""
    lines = kept.read_text().splitlines() if kept.exists() else []
    if "show" in arguments:
        sys.stdout.write("\n".join(lines) or "No reservations in the system\n")
        return
    answer = dict(word.split("=", 1) for word in arguments if "=" in word)
    lines = [line for line in lines if f"ReservationName={answer['ReservationName']} " not in line]
    if "create" in arguments:
        day, clock = answer["StartTime"].split("T")
        hours, minutes, seconds = clock.split(":")
        end = int(hours) * 60 + int(minutes) + int(answer["Duration"])
        answer["EndTime"] = f"{day}T{end // 60:02}:{end % 60:02}:{seconds}"
        lines.append(" ".join(f"{key}={value}" for key, value in answer.items()))
    kept.write_text("\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
