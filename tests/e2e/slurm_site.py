"""One Slurm site on real local nodes, for all tests of accounts and operations: it is set up once.

Its spec is that of the twelve jobs whose order was computed by hand, with a quota and two users.
The accounts are on a host of their own: the controller is taken away in the course of the tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .conftest import LiveCluster, until

TWELVE: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[1] / "cases/priority/twelve-jobs/case.yaml").read_text()
)
QOS: dict[str, dict[str, Any]] = {name: {"priority": p} for name, p in TWELVE["qos"].items()}
QOS["urgent"]["preempts"] = ["low"]
QOS["low"] |= {"preemptible": "requeue", "grace": "20s"}
QOS["high"]["gpu_limit_per_user"] = 4
PARTITION = "batch"
"""The default one."""


class Site:
    """The cluster, the spec that is changed from test to test, and what people do there."""

    def __init__(self, live: LiveCluster) -> None:
        """Write the spec; nothing is started."""
        live.write_spec(nodes=4)
        self.live = live
        self.spec: dict[str, Any] = yaml.safe_load(live.spec.read_text())
        self.spec["pools"]["books"] = {"site": "here", "role": "login"}
        self.spec["users"] = [{"name": "ada", "uid": 2001}, {"name": "bob", "uid": 2002}]
        self.spec["scheduler"] = {
            "type": "slurm",
            "accounting": {"pool": "books"},
            "qos": QOS,
            "accounts": {
                "nlp": {"share": 60, "users": ["ada"]},
                "vision": {"share": 40, "gpu_quota": 8, "users": ["bob"]},
            },
            "priority": TWELVE["weights"],
            "partitions": {
                name: {
                    "pools": ["gpu"],
                    "tier": tier,
                    "default": name == PARTITION,
                    "max_time": "1h",
                }
                for name, tier in TWELVE["partitions"].items()
            },
        }
        self.write()

    def write(self) -> None:
        """Write the spec as it is now."""
        self.live.spec.write_text(yaml.safe_dump(self.spec, sort_keys=False))

    def up(self) -> Any:
        """Run `up` to its end."""
        return self.live.json("up", str(self.live.spec), "--yes")

    def do(self, verb: str, *words: str, expect: int | None = 0) -> Any:
        """Run a verb on the cluster."""
        return self.live.json(verb, str(self.live.spec), *words, expect=expect)

    def head(self, command: str) -> str:
        """Run a shell line on the controller."""
        return self.live.on("head", command).strip()

    def on_database_host(self, command: str) -> str:
        """Run a shell line where slurmdbd and MariaDB are."""
        return self.live.on("books", command).strip()

    def sbatch(self, user: str, name: str, options: str, script: str = "sleep 600") -> str:
        """Send a job as a user; return its id."""
        return self.head(
            f"cd /tmp && runuser -u {user} -- sbatch --parsable --job-name={name} "
            f"--output=/dev/null --time=50 {options} --wrap '{script}'"
        )

    def state(self, job: str) -> str:
        """Return "RUNNING None": a job's state and its reason."""
        return self.head(f"squeue --noheader --job={job} --format='%T %r'")

    def clear(self) -> None:
        """Cancel every job and wait until they are gone."""
        self.head("scancel --user=ada; scancel --user=bob; scancel --state=PENDING")
        until(lambda: not self.head("squeue --noheader"))

    def queue(self) -> tuple[int, int]:
        """Return the running and pending jobs as `status` reports them."""
        queue = self.do("status", expect=None)["queue"]
        return (queue["running"], queue["pending"]) if queue else (-1, -1)

    def causes(self) -> dict[str, str]:
        """Return kind -> host of what is wrong."""
        status = self.do("status", expect=None)
        return {cause["kind"]: cause["host"] for cause in status["causes"]}

    def container(self, node: str) -> str:
        """Return the name of a node's container."""
        return f"gcluster-{self.live.name}-{node}"
