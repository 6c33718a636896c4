"""A repository with pipelines, and a runner that runs their jobs in a shell as GitHub does."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.operations.gitops.pipelines import (
    Forge,
    Pipelines,
    Written,
    write_pipelines,
)
from gcluster.stacks.simulated import fleet, stamps

from .conftest import SPEC
from .doubles import Doubles
from .git_server import git

CLOUDS = """\
apiVersion: gcluster/v1
name: sky
state: s3://acme/sky
sites:
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {cidr: 10.40.0.0/16}
    ssh: {tunnel: ssm}
  mid:
    provider: gcp
    project: acme
    region: us-central1
    zone: us-central1-a
    network: {cidr: 10.41.0.0/16}
  west: {provider: azure, region: westeurope, subscription: s, network: {cidr: 10.42.0.0/16}}
pools:
  head: {site: east, role: controller, machine: m7i.4xlarge}
  train: {site: east, machine: p5.48xlarge, count: 2}
scheduler: {type: slurm}
"""


class Repo:
    """A repository with one spec of simulated nodes, its pipelines, and doubles."""

    def __init__(self, folder: Path) -> None:
        """Write and commit the spec."""
        self.top = folder / "repo"
        self.states = folder / "states"
        self.doubles = Doubles(folder / "doubles")
        git("init", "--quiet", "--initial-branch=main", str(self.top))
        self.spec = self.top / "specs" / "aa.yaml"
        self.spec.parent.mkdir()
        self.spec.write_text(SPEC.format(name="aa", states=self.states, count=2, more=""))

    def write(self, forge: Forge, **more: str) -> Written:
        """Write the pipelines and commit all."""
        written = write_pipelines(self.top, Pipelines(forge=forge, **more))
        git("add", "--all", at=self.top)
        who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
        git(*who, "commit", "--quiet", "-m", "pipelines", at=self.top)
        return written

    def nodes(self) -> int:
        """Return how many nodes the cluster has."""
        return len(open_cluster(str(self.spec)).ledger.existing()) if self.states.exists() else 0

    def lose(self, node: str) -> None:
        """Take a node away behind gcluster's back."""
        (site,) = open_sites(open_cluster(str(self.spec), running=True))
        fleet.cloud(site.context).delete([node])
        stamps.forget(site.context, [node])

    def checkout(self, name: str) -> Path:
        """Clone it, as a job does; a new folder each time."""
        place = self.top.parent / "jobs" / name
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(exist_ok=True)
        git("clone", "--quiet", str(self.top), str(place))
        return place

    def sh(self, argv: list[str], script: str, at: Path, **env: str) -> int:
        """Run a line of a pipeline as its runner does; return the exit code."""
        done = subprocess.run(
            [*argv, "-c", script], cwd=at, env={**self.doubles.environment, **env},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.output = done.stdout + done.stderr
        return done.returncode


def workflow_text(repo: Repo) -> str:
    return "".join(path.read_text() for path in (repo.top / ".github" / "workflows").glob("*.yml"))


class GitHub:
    """Runs the jobs of workflows, with artifacts and outputs, in a shell as GitHub does."""

    def __init__(self, repo: Repo) -> None:
        """Read the workflows; nothing has run."""
        self.repo = repo
        self.ran: set[str] = set()
        folder = repo.top / ".github" / "workflows"
        self.workflows: dict[str, Any] = {
            path.stem.removeprefix("gcluster-"): yaml.load(path.read_text(), yaml.BaseLoader)  # noqa: S506  # strings alone
            for path in folder.glob("*.yml")
        }
        self.artifacts = repo.doubles.folder / "artifacts"

    def job(self, workflow: str, job: str, *, skip: str = "", **env: str) -> list[int]:
        """Run one job; return the exit codes of its run steps. `skip`: an `if` that is false."""
        steps = self.workflows[workflow]["jobs"][job]["steps"]
        place = self.repo.top.parent / "jobs" / f"{workflow}-{job}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        own = {
            "GITHUB_REPOSITORY": "acme/specs", "GITHUB_SHA": "f" * 40, "PULL_REQUEST": "12",
            "GITHUB_OUTPUT": str(place.parent / "output"), "GCLUSTER_AGE_KEY": "",
            "GITHUB_STEP_SUMMARY": str(place.parent / "summary"), "GITHUB_RUN_ID": "1", **env,
        }  # fmt: skip
        codes = []
        for step in steps:
            if skip and step.get("if") == skip:
                continue
            if "run" in step:
                assert "${{" not in step["run"], "expressions in a shell line can be injected into"
                self.ran.add(step["run"])
                codes.append(self.repo.sh(["bash", "-e"], step["run"], place, **own))
                assert "not found" not in self.repo.output
            elif step["uses"].startswith("actions/checkout@"):
                place = self.repo.checkout(place.name)
            elif "upload-artifact" in step["uses"]:
                self._keep(place, step["with"])
            elif "download-artifact" in step["uses"]:
                kept = self.artifacts / step["with"]["name"]
                shutil.copytree(kept, place, dirs_exist_ok=True)
            elif "upload-sarif" in step["uses"]:
                assert (place / step["with"]["sarif_file"]).is_file()
        return codes

    def _keep(self, place: Path, options: dict[str, str]) -> None:
        kept = self.artifacts / options["name"]
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for name in options["path"].split():
            if (place / name).is_dir():
                shutil.copytree(place / name, kept / name)
            elif (place / name).exists():
                shutil.copy(place / name, kept / name)
