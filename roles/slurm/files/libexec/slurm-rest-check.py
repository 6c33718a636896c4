#!/usr/bin/env python3
"""Ask slurmrestd on this host for slurmctld, with a token made now; say in words why it fails.

slurm-rest-check.py [PORT]    exit 0: it answers, lets a token in, and refuses who has none
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any, NoReturn


def ask(url: str, token: str) -> dict[str, Any]:
    """Return the answer as JSON; without a token ("") none is sent."""
    request = urllib.request.Request(url)  # noqa: S310  # http, to this host
    if token:
        request.add_header("X-SLURM-USER-NAME", "root")
        request.add_header("X-SLURM-USER-TOKEN", token)
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310  # as above
        found: dict[str, Any] = json.load(answer)
        return found


def fail(why: str) -> NoReturn:
    """End with a reason."""
    print("slurmrestd: " + why, file=sys.stderr)
    sys.exit(1)


def main() -> None:
    """Make a token and ask for the controllers by the newest version of the API."""
    base = "http://127.0.0.1:" + (sys.argv[1] if len(sys.argv) > 1 else "6820")
    made = subprocess.run(
        ["scontrol", "token", "lifespan=60"],
        capture_output=True,
        text=True,
        check=False,
    )
    token = made.stdout.strip().rpartition("SLURM_JWT=")[2]
    if made.returncode or not token:
        fail("slurmctld makes no token: " + (made.stderr.strip() or "no word why"))
    try:
        paths = ask(base + "/openapi/v3", token)["paths"]
        pings = sorted(
            path
            for path in paths
            if path.startswith("/slurm/v") and path.strip("/").endswith("/ping")
        )
        if not pings:
            fail("its API has no ping")
        answer = ask(base + pings[-1], token)
    except (OSError, ValueError, KeyError) as error:
        fail(f"no answer at {base}: {error}")
    if answer.get("errors"):
        fail(f"slurmctld does not answer it: {answer['errors']}")
    try:
        ask(base + pings[-1], "")
    except urllib.error.HTTPError:
        return
    except OSError as error:
        fail(f"no answer at {base}: {error}")
    fail("it lets in who has no token")


main()
