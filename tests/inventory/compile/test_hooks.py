"""Hooks become steps at their points, and programs that Slurm and the health check run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcluster.inventory.compile import Step
from gcluster.inventory.compile.hooks import HookStep, hook_secrets, literal
from gcluster.inventory.compile.steps import Stage
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

from . import golden

SCRIPT = "#!/bin/sh\ndocker inspect --format '{{.State}}'\n"
SPEC = """apiVersion: gcluster/v1
name: demo
sites: {{here: {{provider: {provider}{ssh}}}}}
pools:
  head: {{site: here, role: controller{hosts[0]}}}
  gpu: {{site: here, machine: {machine}{hosts[1]}}}
scheduler: {{type: {scheduler}}}
hooks:
  last: {{type: script, path: run.sh, after: monitoring}}
  site-prep: {{type: role, path: site, after: base, variables: {{a: 1}}, secrets: {{key: "env:K"}}}}
  first: {{type: script, path: run.sh, before: base, pools: [gpu], spares_jobs: true}}
  usual: {{type: script, path: run.sh, secrets: {{TOKEN: "env:T"}}}}
  hot: {{type: health-check, path: run.sh, pools: [gpu]}}
{jobs}"""
JOBS = """  scrub: {type: epilog, path: run.sh}
  licence: {type: prolog, path: run.sh}
"""
FOLDER = "/usr/local/libexec/gcluster/hooks"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the spec, with what its hooks name."""
    (tmp_path / "run.sh").write_text(SCRIPT)
    (tmp_path / "site/tasks").mkdir(parents=True)
    (tmp_path / "site/tasks/main.yml").write_text("- ansible.builtin.debug: {msg: x}\n")
    (tmp_path / "site/blob").write_bytes(b"\xff\0")
    return tmp_path


def spec_of(folder: Path, *, real: bool = False, scheduler: str = "slurm") -> ClusterSpec:
    text = SPEC.format(
        provider="bare-metal" if real else "local",
        ssh=", ssh: {user: ops}" if real else "",
        machine="hgx-h100-8" if real else "sim.h100x8",
        hosts=(", hosts: head01", ', hosts: "gpu[001-002]"') if real else ("", ", count: 2"),
        scheduler=scheduler,
        jobs=JOBS if scheduler == "slurm" else "",
    )
    loaded = load_text(text, folder=folder)
    assert loaded.spec is not None, [d.summary for d in loaded.diagnostics]
    return loaded.spec


def steps_of(spec: ClusterSpec) -> dict[str, dict[str, Step]]:
    groups = golden.compiled(spec).groups
    return {group.name: {step.key: step for step in group.steps} for group in groups}


def test_a_hook_is_before_or_after_all_of_its_stage(folder: Path) -> None:
    steps = list(steps_of(spec_of(folder))["gpu"].values())
    order = [step.key for step in steps]
    of = {stage: [s.key for s in steps if s.stage == stage] for stage in Stage}
    assert order[0] == "hook_first.configure"
    assert of[Stage.BASE][-1] == "hook_site_prep.configure"
    assert of[Stage.SCHEDULER][0] == "hook_usual.configure"
    assert order[-1] == "hook_last.configure"


def test_only_the_pools_that_a_hook_names_run_it(folder: Path) -> None:
    steps = steps_of(spec_of(folder))
    assert "hook_first.configure" in steps["gpu"]
    assert "hook_first.configure" not in steps["head"]
    assert "hook_site_prep.configure" in steps["head"]


def test_jobs_are_drained_for_a_hook_that_is_not_marked_as_harmless(folder: Path) -> None:
    steps = steps_of(spec_of(folder))["gpu"]
    assert steps["hook_usual.configure"].needs_drain
    assert not steps["hook_first.configure"].needs_drain


def test_another_file_of_a_role_or_another_script_is_another_step_and_another_spec(
    folder: Path,
) -> None:
    def digests() -> dict[str, str]:
        steps = steps_of(spec_of(folder))["gpu"]
        return {
            key: s.digest("", dict.fromkeys(s.secrets.values(), "1")) for key, s in steps.items()
        }

    before = digests()
    (folder / "site/blob").write_bytes(b"\xff\1")
    changed = {key for key, digest in digests().items() if digest != before[key]}
    assert changed == {"hook_site_prep.configure"}
    before = digests()
    (folder / "run.sh").write_text(SCRIPT + "# other\n")
    changed = {key for key, digest in digests().items() if digest != before[key]}
    assert {"hook_first.configure", "hooks.configure"} < changed
    assert not changed & {"hook_site_prep.configure", "slurm.configure", "node_health.configure"}


def test_a_spec_with_its_files_in_it_is_the_same_spec(folder: Path, tmp_path: Path) -> None:
    """So clusters are planned, repaired and taken down where the files are not."""
    text = SPEC.format(provider="local", ssh="", machine="sim.h100x8", hosts=("", ", count: 2"),
                       scheduler="slurm", jobs=JOBS)  # fmt: skip
    loaded = load_text(text, folder=folder)
    elsewhere = load_text(loaded.whole_text, folder=tmp_path / "nowhere")
    assert elsewhere.diagnostics == ()
    assert elsewhere.spec == loaded.spec


def test_braces_of_a_script_are_no_template_of_ansible() -> None:
    assert literal("plain $HOME") == "plain $HOME"
    assert "State" not in literal(SCRIPT)
    assert literal(SCRIPT).endswith("| ansible.builtin.b64decode }}")


def test_secrets_are_named_after_hook_and_variable(folder: Path) -> None:
    spec = spec_of(folder)
    assert hook_secrets(spec) == {"hook.site-prep.0.key": "env:K", "hook.usual.0.token": "env:T"}
    step = steps_of(spec)["gpu"]["hook_usual.configure"]
    assert step.secrets == {"hooks_secret_TOKEN": "hook.usual.0.token"}


def programs(spec: ClusterSpec, pool: str) -> dict[str, Any]:
    variables: dict[str, Any] = steps_of(spec)[pool]["hooks.configure"].variables["hooks_programs"]
    return {path.removeprefix(f"{FOLDER}/"): text for path, text in variables.items()}


def test_machines_run_gcluster_s_own_prolog_first_and_its_epilog_last(folder: Path) -> None:
    spec = spec_of(folder, real=True)
    found = programs(spec, "gpu")
    assert sorted(path for path in found if path.startswith("prolog")) == [
        "prolog.d/000-gcluster",
        "prolog.d/007-licence",
    ]
    assert sorted(path for path in found if path.startswith("epilog")) == [
        "epilog.d/006-scrub",
        "epilog.d/999-gcluster",
    ]
    assert found["prolog.d/000-gcluster"].endswith(
        "exec /usr/local/libexec/gcluster/job-prolog.py\n"
    )
    slurm = steps_of(spec)["head"]["slurm.configure"].variables
    assert slurm["slurm_prolog"] == "/usr/local/libexec/gcluster/run-prologs.sh"
    assert slurm["slurm_epilog"] == "/usr/local/libexec/gcluster/run-epilogs.sh"


def test_containers_run_the_hooks_alone(folder: Path) -> None:
    spec = spec_of(folder)
    assert sorted(programs(spec, "gpu")) == [
        "epilog.d/006-scrub",
        "health.d/hot",
        "prolog.d/007-licence",
    ]
    assert "hooks.configure" not in steps_of(spec)["head"]
    slurm = steps_of(spec)["head"]["slurm.configure"].variables
    assert slurm["slurm_prolog_flags"] == ["Alloc"]


def test_under_kubernetes_only_the_health_check_has_programs(folder: Path) -> None:
    spec = spec_of(folder, scheduler="kubernetes")
    assert list(programs(spec, "gpu")) == ["health.d/hot"]
    health = steps_of(spec)["gpu"]["node_health.configure"].variables
    assert health["node_health_programs"] == [{"name": "hot", "path": f"{FOLDER}/health.d/hot"}]


def test_a_step_of_a_role_holds_its_files(folder: Path) -> None:
    step = steps_of(spec_of(folder))["gpu"]["hook_site_prep.configure"]
    assert isinstance(step, HookStep)
    assert step.user_role is not None
    assert step.user_role.files["blob"] == "data:;base64,/wA="
    assert step.variables == {
        "a": 1,
        "gcluster_cluster": "demo",
        "gcluster_pool": "gpu",
        "gcluster_role": "compute",
    }
