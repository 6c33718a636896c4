"""Each line of the pipelines that `init --ci` writes is run, from a pull request to a cluster."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from gcluster.lifecycle.cluster.outcome import Exit

from .conftest import SPEC
from .git_server import git
from .pipeline_harness import CLOUDS, GitHub, Repo


@pytest.fixture
def repo(own_places: Path) -> Repo:
    return Repo(own_places)


def test_on_github_a_pull_request_is_planned_and_its_merge_applies_that_plan(repo: Repo) -> None:
    repo.write("github")
    github = GitHub(repo)
    assert github.job("plan", "validate") == [0, 0]
    assert github.job("plan", "plan") == [0, 0]
    assert github.job("plan", "comment") == [0]
    comment = repo.doubles.left("comment")
    assert comment.startswith("<!-- gcluster:plans -->")
    assert "aa" in comment
    assert github.job("plan", "comment") == [0]
    assert [line.split()[3] for line in repo.doubles.calls if "--method" in line] == [
        "POST", "PATCH",
    ]  # fmt: skip
    assert repo.nodes() == 0
    mine = "steps.approved.outputs.of == ''"
    assert github.job("apply", "plan", skip=mine, GITHUB_EVENT_NAME="push") == [0, 0, 0]
    assert github.job("apply", "apply") == [0, 0]
    assert repo.nodes() == 3
    assert [line for line in repo.doubles.calls if line.startswith("gcluster up")] == [
        "gcluster up specs/aa.yaml --plan plans/specs_aa.yaml.gcplan"
    ]


def test_on_github_a_plan_that_holds_no_more_is_refused_and_recreated_by_hand(
    repo: Repo,
) -> None:
    repo.write("github")
    github = GitHub(repo)
    github.job("plan", "plan")
    repo.spec.write_text(SPEC.format(name="aa", states=repo.states, count=3, more=""))
    git("add", "--all", at=repo.top)
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
    git(*who, "commit", "--quiet", "-m", "more", at=repo.top)
    github.job("apply", "plan", skip="steps.approved.outputs.of == ''", GITHUB_EVENT_NAME="push")
    assert github.job("apply", "apply") == [0, int(Exit.REFUSED)]
    assert repo.nodes() == 0
    assert github.job("apply", "plan", GITHUB_EVENT_NAME="workflow_dispatch") == [0, 0, 0, 0]
    assert github.job("apply", "apply") == [0, 0]
    assert repo.nodes() == 4


def test_a_spec_that_came_with_the_plans_is_not_applied(repo: Repo) -> None:
    repo.write("github")
    github = GitHub(repo)
    github.job("plan", "plan")
    plans = github.artifacts / "gcluster-plans" / "plans"
    shutil.copy(repo.spec, plans / "evil.yaml")
    order = (plans / "order").read_text()
    (plans / "order").write_text(order.replace("specs/aa.yaml", "plans/evil.yaml"))
    assert github.job("apply", "apply") == [0, int(Exit.SPEC)]
    assert repo.output == "plans/evil.yaml: not among the specs that were merged\n"
    assert repo.nodes() == 0


@pytest.mark.parametrize("written", ['"gcluster/v1"', "'gcluster/v1'", "gcluster/v1  # ours"])
def test_a_spec_is_planned_however_its_version_is_quoted(repo: Repo, written: str) -> None:
    text = repo.spec.read_text()
    repo.spec.write_text(text.replace("apiVersion: gcluster/v1", f"apiVersion: {written}"))
    repo.write("github")
    github = GitHub(repo)
    assert github.job("plan", "plan") == [0, 0]
    order = github.artifacts / "gcluster-plans" / "plans" / "order"
    assert order.read_text().split()[1:] == ["specs/aa.yaml"]


def test_on_github_plans_that_were_not_kept_are_recreated(repo: Repo) -> None:
    """So it is after a month, and for the pull request of a fork, which is not planned."""
    repo.write("github")
    github = GitHub(repo)
    assert github.job("apply", "plan", GITHUB_EVENT_NAME="push") == [0, 0, 0, 0]
    assert "run download 42" in "".join(repo.doubles.calls)
    output = repo.top.parent / "jobs" / "output"
    assert not output.exists(), "nothing was found that was approved"
    assert github.job("apply", "apply") == [0, 0]
    assert repo.nodes() == 3


def test_on_github_drift_becomes_an_issue_and_every_line_of_the_workflows_runs(
    repo: Repo,
) -> None:
    repo.write("github")
    github = GitHub(repo)
    github.job("plan", "validate")
    github.job("plan", "plan")
    github.job("plan", "comment")
    github.job("apply", "plan", GITHUB_EVENT_NAME="push")
    github.job("apply", "apply")
    repo.lose("gpu002")
    assert github.job("watch", "drift") == [0, 0]
    assert github.job("watch", "report") == [0]
    assert "gpu002" in repo.doubles.left("issue")
    assert github.job("watch", "report") == [0]
    assert [line.split()[2] for line in repo.doubles.calls if " issue " in line] == [
        "list", "create", "list", "edit",
    ]  # fmt: skip
    assert github.job("watch", "expire") == [0, 0]
    assert github.job("watch", "smoke") == [0, 0]
    steps = [
        step
        for workflow in github.workflows.values()
        for job in workflow["jobs"].values()
        for step in job["steps"]
    ]
    assert {step["run"] for step in steps if "run" in step} == github.ran
    drift = "gcluster drift specs/aa.yaml --detailed-exitcode --format markdown"
    assert drift in repo.doubles.calls


def test_where_a_cluster_can_not_be_queried_the_watch_fails(repo: Repo) -> None:
    repo.write("github")
    github = GitHub(repo)
    assert github.job("watch", "drift")[-1] == int(Exit.FAILED)
    assert "GC1102" in repo.output, "it was never applied"


def test_a_broken_spec_fails_the_check_and_its_findings_are_there(repo: Repo) -> None:
    repo.write("github")
    (repo.top / "specs" / "bb.yaml").write_text("apiVersion: gcluster/v1\nname: bb\n")
    git("add", "--all", at=repo.top)
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
    git(*who, "commit", "--quiet", "-m", "broken", at=repo.top)
    github = GitHub(repo)
    assert github.job("plan", "validate") == [0, int(Exit.SPEC)]


def test_a_spec_without_a_state_is_neither_checked_well_nor_planned(repo: Repo) -> None:
    text = repo.spec.read_text()
    repo.spec.write_text(re.sub("^state:.*\n", "", text, flags=re.MULTILINE))
    written = repo.write("github")
    github = GitHub(repo)
    assert written.stateless == ("specs/aa.yaml",)
    assert github.job("plan", "validate") == [0, int(Exit.SPEC)]
    assert github.job("plan", "plan") == [0, int(Exit.SPEC)]
    assert "GC1131" in repo.output


def test_every_line_of_the_gitlab_pipeline_runs(repo: Repo) -> None:
    (repo.top / "specs" / "sky.txt").write_text(CLOUDS)
    repo.write("gitlab")
    place = repo.checkout("gitlab")
    jobs = yaml.safe_load((place / ".gitlab" / "gcluster.yml").read_text())
    env = {
        "CI_API_V4_URL": "https://gitlab.example.org/api/v4", "CI_PROJECT_ID": "9",
        "CI_MERGE_REQUEST_IID": "12", "GCLUSTER_COMMENT_TOKEN": "glpat-planted",
        "CI_JOB_TOKEN": "glpat-planted", "CI_PIPELINE_SOURCE": "push",
        "CI_COMMIT_MESSAGE": "Merge branch\n\nSee merge request acme/specs!12\n",
    }  # fmt: skip

    def run(job: str, **more: str) -> int:
        lines = [*jobs[job].get("before_script", jobs[".gcluster"]["before_script"])]
        lines += jobs[job]["script"]
        script = "set -e\n" + "\n".join(lines)
        return repo.sh(["sh", "-e"], script, place, **{**env, **more})

    assert run("gcluster validate") == 0, repo.output
    assert run("gcluster plan") == 0, repo.output
    assert repo.doubles.left("comment").startswith("<!-- gcluster:plans -->")
    assert any("--request PUT" in call and "/notes/7" in call for call in repo.doubles.calls)
    with zipfile.ZipFile(repo.doubles.folder / "plans.zip", "w") as archive:
        for path in [place / "comment.md", *(place / "plans").iterdir()]:
            archive.write(path, path.relative_to(place))
    shutil.rmtree(place / "plans")
    assert run("gcluster approved") == 0, repo.output
    assert sum(call.startswith("gcluster plan") for call in repo.doubles.calls) == 1
    assert run("gcluster apply") == 0, repo.output
    assert repo.nodes() == 3
    assert run("gcluster approved", CI_PIPELINE_SOURCE="web") == 0
    assert sum(call.startswith("gcluster plan") for call in repo.doubles.calls) == 2
    assert run("gcluster drift") == 0
    repo.lose("gpu002")
    assert run("gcluster drift") == int(Exit.PENDING)
    assert run("gcluster expire") == 0
    assert run("gcluster smoke") == 0
    assert not (place / ".token").exists()


@pytest.mark.parametrize("right", ["plan", "apply"])
def test_the_logins_of_gitlab_hand_tokens_over_in_files_of_their_own(
    repo: Repo, right: str
) -> None:
    (repo.top / "specs" / "sky.yaml").write_text(CLOUDS)
    written = repo.write("gitlab")
    assert written.clouds == ("aws", "gcp", "azure")
    jobs = yaml.safe_load((repo.top / ".gitlab" / "gcluster.yml").read_text())
    assert set(jobs[".gcluster"]["id_tokens"]) == {
        "GCLUSTER_AWS_TOKEN", "GCLUSTER_GCP_TOKEN", "GCLUSTER_AZURE_TOKEN",
    }  # fmt: skip
    logins = jobs["gcluster drift"]["script"][:-1]
    builds = repo.top.parent
    variables = re.findall(r"\bGCLUSTER_\w+", "".join(logins))
    code = repo.sh(
        ["sh", "-e"], "set -u\n" + "\n".join(logins) + "\nenv", builds,
        **{name: f"value-of-{name}" for name in variables if name != "GCLUSTER_RIGHT"},
        CI_BUILDS_DIR=str(builds), CI_JOB_ID="1", GCLUSTER_RIGHT=right,
    )  # fmt: skip
    assert code == 0, repo.output
    assert f"AWS_ROLE_ARN=value-of-GCLUSTER_AWS_{right.upper()}_ROLE" in repo.output
    assert f"AZURE_CLIENT_ID=value-of-GCLUSTER_AZURE_{right.upper()}_CLIENT" in repo.output
    gcp = yaml.safe_load((builds / ".gcp.json").read_text())
    account = f"value-of-GCLUSTER_GCP_{right.upper()}_ACCOUNT"
    assert f"/{account}:generateAccessToken" in gcp["service_account_impersonation_url"]
    for name in (".aws-token", ".gcp-token", ".azure-token", ".gcp.json"):
        assert (builds / name).stat().st_mode & 0o077 == 0


def test_what_flux_runs_runs(repo: Repo) -> None:
    repo.write("flux", repo=str(repo.top))
    manifests = list(yaml.safe_load_all((repo.top / "flux/gcluster/gcluster.yaml").read_text()))
    (deployment,) = [each for each in manifests if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["tini", "--", "gcluster", "reconcile"]
    words = ["gcluster", "reconcile", *container["args"], "--once"]
    done = subprocess.run(
        words, env=repo.doubles.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert repo.nodes() == 3
    jobs = [each for each in manifests if each["kind"] == "CronJob"]
    for job, word in zip(jobs, ("drift", "smoke"), strict=True):
        (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        (script,) = container["args"]
        script = script.replace("/tmp/specs", str(repo.top.parent / "cloned"))  # noqa: S108  # where the pod has it
        assert repo.sh(["sh", "-e"], script, repo.top) == 0, repo.output
        assert any(call.startswith(f"gcluster {word} specs/aa.yaml") for call in repo.doubles.calls)
