"""The pipelines that `init --ci` writes: valid, pinned, with no more rights than they need."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.operations.gitops.pipelines import Forge, Pipelines, write_pipelines

from .pipeline_harness import CLOUDS, GitHub, Repo, workflow_text


@pytest.fixture
def repo(own_places: Path) -> Repo:
    return Repo(own_places)


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_the_published_schema_takes_the_pipelines(repo: Repo, forge: Forge) -> None:
    (repo.top / "specs" / "sky.yaml").write_text(CLOUDS)
    repo.write(forge)
    if forge == "github":
        files = sorted((repo.top / ".github" / "workflows").iterdir())
        schema = ["vendor.github-workflows"]
    else:
        files = [repo.top / ".gitlab" / "gcluster.yml", repo.top / ".gitlab-ci.yml"]
        schema = ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"]
    done = subprocess.run(
        ["check-jsonschema", "--builtin-schema", *schema, *map(str, files)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_actions_are_pinned_and_each_job_reports_what_it_may(repo: Repo) -> None:
    (repo.top / "specs" / "sky.yaml").write_text(CLOUDS)
    repo.write("github")
    assert re.findall(r"uses: (?!\S+@[0-9a-f]{40} # v\d)\S+", workflow_text(repo)) == []
    writes = set()
    for name, workflow in GitHub(repo).workflows.items():
        assert workflow["permissions"] == {}
        for job, body in workflow["jobs"].items():
            assert body["permissions"] != {}
            assert body["timeout-minutes"].isdecimal()
            writes |= {
                f"{name}/{job} {what}"
                for what, may in body["permissions"].items()
                if may.startswith("write") and what != "id-token"
            }
    assert writes == {
        "plan/validate security-events",
        "plan/comment pull-requests",
        "watch/report issues",
    }


def test_pipelines_log_in_to_the_specs_clouds_without_a_stored_secret(repo: Repo) -> None:
    (repo.top / "specs" / "sky.yaml").write_text(CLOUDS)
    repo.write("github")
    text = workflow_text(repo)
    assert "gcluster[aws,azure,gcp]==" in text
    assert set(re.findall(r"secrets\.(\w+)", text)) == {"GCLUSTER_AGE_KEY"}
    jobs = GitHub(repo).workflows["apply"]["jobs"]
    assert jobs["apply"]["permissions"]["id-token"] == "write"
    assert jobs["apply"]["environment"] == "gcluster"
    roles = {
        job: {
            step["with"]["role-to-assume"]
            for step in body["steps"]
            if "aws-actions" in step.get("uses", "")
        }
        for job, body in jobs.items()
    }
    assert roles == {
        "plan": {"${{ vars.GCLUSTER_AWS_PLAN_ROLE }}"},
        "apply": {"${{ vars.GCLUSTER_AWS_APPLY_ROLE }}"},
    }


def test_without_clouds_nothing_may_request_a_token(repo: Repo) -> None:
    repo.write("github")
    assert "id-token" not in workflow_text(repo)


def test_nothing_is_written_over_and_then_nothing_is_written(repo: Repo) -> None:
    mine = repo.top / ".github" / "workflows" / "gcluster-apply.yml"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(LifecycleError) as error:
        repo.write("github")
    assert error.value.diagnostics[0].code == "GC945"
    assert (mine.read_text(), (repo.top / "ci").exists()) == ("mine", False)


def test_an_own_gitlab_file_is_kept_and_reported_what_to_include(repo: Repo) -> None:
    (repo.top / ".gitlab-ci.yml").write_text("stages: [build]\n")
    written = repo.write("gitlab")
    assert (repo.top / ".gitlab-ci.yml").read_text() == "stages: [build]\n"
    assert "include:" in written.by_hand[0]


@pytest.mark.parametrize(
    ("forge", "more"),
    [
        ("github", {"specs": "../specs"}),
        ("github", {"specs": "a b"}),
        ("github", {"specs": "$(id)"}),
        ("github", {"branch": "a b"}),
        ("flux", {}),
        ("flux", {"repo": "https://a:b@git.example.org/x"}),
    ],
)
def test_what_is_not_supported_in_a_pipeline_is_refused(
    repo: Repo, forge: Forge, more: dict[str, str]
) -> None:
    with pytest.raises(LifecycleError) as error:
        repo.write(forge, **more)
    assert error.value.exit_code is Exit.USAGE


def test_outside_of_a_repository_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(LifecycleError) as error:
        write_pipelines(tmp_path, Pipelines(forge="github"))
    assert error.value.diagnostics[0].code == "GC1138"
    assert list(tmp_path.iterdir()) == []


def test_by_hand_only_what_is_on_the_branch_is_planned_and_applied(repo: Repo) -> None:
    repo.write("github", branch="trunk")
    jobs = GitHub(repo).workflows["apply"]["jobs"]
    assert jobs["plan"]["if"] == "github.ref == 'refs/heads/trunk'"
    assert jobs["apply"]["needs"] == "plan"


def test_no_command_of_the_script_reads_the_list_that_its_loop_reads(repo: Repo) -> None:
    repo.write("github")
    script = (repo.top / "ci" / "gcluster-pipeline").read_text().replace("\\\n", "")
    looped = re.findall(r'^ +gcluster \w+ "\$spec".*$', script, re.MULTILINE)
    assert len(looped) == 5
    assert [line for line in looped if "</dev/null" not in line] == []


def test_a_nightly_check_that_hangs_is_ended(repo: Repo) -> None:
    repo.write("flux", repo="https://git.example.org/ops/clusters.git")
    manifests = yaml.safe_load_all((repo.top / "flux/gcluster/gcluster.yaml").read_text())
    jobs = [each["spec"]["jobTemplate"]["spec"] for each in manifests if each["kind"] == "CronJob"]
    assert [job["activeDeadlineSeconds"] for job in jobs] == [7200, 7200]
