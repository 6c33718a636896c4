"""Which engine is found and how its answers are read. The programs on PATH here are doubles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.shell_double import write_double

from gcluster.stacks.local import labels, nodes
from gcluster.stacks.local.engine import (
    Container,
    DockerEngine,
    Engine,
    EngineFacts,
    find_engine,
    label_filters,
    runtime_flags,
)
from gcluster.stacks.provider import ProviderError


@pytest.fixture
def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Return a maker of programs on an otherwise empty PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(name: str, script: str) -> Path:
        program = tmp_path / name
        write_double(program, script)
        return program

    return make


def _facts(runtime: str) -> EngineFacts:
    return EngineFacts(version="4.3.1", runtime=runtime, rootless=False, storage=Path("/"))


def test_auto_prefers_podman(double: Callable[[str, str], Path]) -> None:
    double("docker", "exit 0")
    podman = double("podman", "exit 0")
    assert find_engine("auto").executable == str(podman)


def test_auto_takes_docker_where_podman_is_absent(double: Callable[[str, str], Path]) -> None:
    double("docker", "exit 0")
    assert isinstance(find_engine("auto"), DockerEngine)


def test_a_chosen_engine_is_not_replaced_by_the_other(
    double: Callable[[str, str], Path],
) -> None:
    double("podman", "exit 0")
    with pytest.raises(ProviderError, match="docker is not installed"):
        find_engine("docker")


@pytest.mark.usefixtures("double")
def test_without_any_engine_the_error_has_the_command() -> None:
    with pytest.raises(ProviderError, match="neither podman nor docker is installed") as caught:
        find_engine("auto")
    assert caught.value.diagnostics[0].hint.startswith("sudo apt-get install -y podman")


def test_an_engines_failure_is_reported_with_its_own_message(
    double: Callable[[str, str], Path],
) -> None:
    double("podman", 'echo "Error: no space left on device" >&2; exit 125')
    with pytest.raises(ProviderError, match="podman run --detach failed: Error: no space left"):
        find_engine().call("run", "--detach", "image")


def test_an_engine_that_hangs_is_given_up(double: Callable[[str, str], Path]) -> None:
    double("podman", "exec /bin/sleep 60")
    with pytest.raises(ProviderError, match="gave no answer"):
        find_engine().call("ps", timeout_s=0.2)


def test_an_engine_that_cannot_be_run_is_an_error_and_no_traceback(
    double: Callable[[str, str], Path],
) -> None:
    broken = double("podman", "")
    engine = find_engine()
    broken.unlink()
    with pytest.raises(ProviderError, match="can't be run"):
        engine.call("ps")


def test_what_podman_lists_becomes_containers(double: Callable[[str, str], Path]) -> None:
    listed = '[{"Id":"1a","Names":["gcluster-demo-head"],"Labels":{"a":"b"},"State":"Exited"},'
    listed += '{"Id":"2b","Names":["other"],"Labels":null,"State":"running"}]'
    double("podman", f"echo '{listed}'")
    head, other = find_engine().containers({})
    assert (head.name, head.labels, head.running) == ("gcluster-demo-head", {"a": "b"}, False)
    assert (other.labels, other.running) == ({}, True)


def test_a_label_filter_is_one_flag_per_label() -> None:
    wanted = {"gcluster.cluster": "demo", "gcluster.id": "1f"}
    assert label_filters(wanted) == [
        "--filter=label=gcluster.cluster=demo",
        "--filter=label=gcluster.id=1f",
    ]


def test_pure_cgroup_v2_needs_no_other_runtime(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    assert runtime_flags(lambda: _facts("crun"), tmp_path) == []


def test_runc_as_the_default_needs_no_flag(tmp_path: Path) -> None:
    assert runtime_flags(lambda: _facts("runc"), tmp_path) == []


def test_crun_is_replaced_by_runc_on_hybrid_cgroups(
    tmp_path: Path, double: Callable[[str, str], Path]
) -> None:
    double("runc", "exit 0")
    assert runtime_flags(lambda: _facts("crun"), tmp_path) == ["--runtime=runc"]


@pytest.mark.usefixtures("double")
def test_crun_on_hybrid_cgroups_without_runc_reports_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ProviderError) as caught:
        runtime_flags(lambda: _facts("crun"), tmp_path)
    assert caught.value.diagnostics[0].hint == "sudo apt-get install -y runc"


def test_a_label_filter_matches_whole_values_of_all_labels_at_once(
    double: Callable[[str, str], Path], tmp_path: Path
) -> None:
    double("podman", f'printf "%s\\n" "$@" > {tmp_path}/told; echo "[]"')
    find_engine().containers({"gcluster.id": "1f", "gcluster.site": "here"})
    answer = (tmp_path / "told").read_text().splitlines()
    assert answer == [
        "ps",
        "--all",
        "--filter=label=gcluster.id=1f",
        "--filter=label=gcluster.site=here",
        "--format",
        "json",
    ]


def test_an_engine_is_queried_once(double: Callable[[str, str], Path], tmp_path: Path) -> None:
    answer = '{"version":{"Version":"4.3"},"store":{"graphRoot":"/store"},"host":'
    answer += '{"ociRuntime":{"name":"runc"},"security":{"rootless":false}}}'
    double("podman", f"echo requested >> {tmp_path}/requested; echo '{answer}'")
    assert [find_engine().facts().runtime, find_engine().facts().runtime] == ["runc", "runc"]
    assert (tmp_path / "requested").read_text() == "requested\n"


def test_what_runs_in_a_container_ends_by_itself_though_it_is_not_waited_for(
    tmp_path: Path,
) -> None:
    podman = tmp_path / "podman"  # a double: the container is this machine
    podman.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    podman.chmod(0o755)
    engine = Engine(str(podman))
    assert engine.inside("node", "sh", "-c", "echo $PPID is not 1") != ""
    with pytest.raises(ProviderError, match="exec node failed"):
        engine.inside("node", "sleep", "1000", limit_s=1)


@pytest.mark.parametrize(
    ("state", "command"),
    [
        ("running", ()),
        ("exited", ("start", "c1")),
        ("created", ("start", "c1")),
        ("paused", ("unpause", "c1")),
    ],
)
def test_a_node_is_woken_from_whatever_its_container_is_in(
    state: str, command: tuple[str, ...]
) -> None:
    container = Container(id="1", name="c1", labels={labels.NODE: "gpu001"}, state=state)
    assert nodes._to_start(container).command == command  # noqa: SLF001  # no engine is called


GONE = 'echo "Error: no volume with name \\"{name}\\" found: no such volume" >&2; exit 1'
"""What podman 4.3 printed; the name was another cluster's in the second case below."""


def test_a_volume_that_is_gone_needs_no_removal(double: Callable[[str, str], Path]) -> None:
    double("podman", GONE.format(name="mine"))
    find_engine("podman").remove_volume("mine")


def test_a_volume_is_removed_though_another_one_goes_meanwhile(
    double: Callable[[str, str], Path], tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    double("podman", f"[ -e {seen} ] && exit 0\n: >{seen}\n{GONE.format(name='other')}")
    find_engine("podman").remove_volume("mine")
    assert seen.exists()


def test_a_volume_in_use_is_an_error(double: Callable[[str, str], Path]) -> None:
    double("podman", 'echo "Error: volume mine is being used by a container" >&2; exit 2')
    with pytest.raises(ProviderError, match="is being used"):
        find_engine("podman").remove_volume("mine")


def test_an_engine_that_names_another_volume_each_time_is_an_error(
    double: Callable[[str, str], Path],
) -> None:
    double("podman", GONE.format(name="other"))
    with pytest.raises(ProviderError, match="other"):
        find_engine("podman").remove_volume("mine")


def test_a_volume_of_another_cluster_is_not_ours_though_podman_lists_it(
    double: Callable[[str, str], Path], tmp_path: Path
) -> None:
    listed = tmp_path / "listed.json"  # by 4.3.1, for --filter=label=kind=volume and one more
    listed.write_text(
        '[{"Name": "theirs", "Labels": {"kind": "volume", "cluster": "other"}},'
        ' {"Name": "mine", "Labels": {"kind": "volume", "cluster": "lab"}}]\n'
    )
    double("podman", f'while read -r line; do echo "$line"; done <{listed}')
    found = find_engine("podman").volumes({"cluster": "lab", "kind": "volume"})
    assert [volume.name for volume in found] == ["mine"]
