"""The compiled tree is the same for the same spec, and overwrites nothing that isn't its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.cluster import SpecError
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.planning.compile_tree import MARKER, compile_tree
from gcluster.lifecycle.planning.preflight.offline import offline_findings
from gcluster.schemas.load import load

from .sample_cluster import SampleCluster, tree

EKS = """\
apiVersion: gcluster/v1
name: managed
sites: {east: {provider: aws, region: us-east-1, zone_id: use1-az4}}
pools:
  train: {site: east, machine: p5.48xlarge, count: 2}
scheduler: {type: kubernetes, control_plane: eks}
smoke: {allreduce: {image: "registry.example.edu/allreduce:1.4"}}
"""
CASE = Path(__file__).parent.parent / "cases" / "compile_tree" / "local"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return a folder that isn't there."""
    return tmp_path / "compiled"


def test_the_local_example_compiles_to_the_files_that_were_reviewed(root: Path, out: Path) -> None:
    compile_tree(root / "examples" / "local.yaml", out)
    assert sorted(tree(out)) == (CASE / "files.txt").read_text(encoding="utf-8").splitlines()


def test_a_group_of_the_local_example_is_as_it_was_reviewed(root: Path, out: Path) -> None:
    compile_tree(root / "examples" / "local.yaml", out)
    reviewed = (CASE / "groups" / "gpu.json").read_text(encoding="utf-8")
    assert (out / "groups" / "gpu.json").read_text(encoding="utf-8") == reviewed


def test_the_graph_of_the_local_example_is_as_it_was_reviewed(root: Path, out: Path) -> None:
    compile_tree(root / "examples" / "local.yaml", out)
    reviewed = (CASE / "graph" / "here.json").read_text(encoding="utf-8")
    assert (out / "graph" / "here.json").read_text(encoding="utf-8") == reviewed


def test_kubernetes_compiles_to_objects_and_to_the_steps_of_its_nodes(
    root: Path, out: Path
) -> None:
    compile_tree(root / "examples" / "kubernetes-h200.yaml", out)
    written = tree(out)
    assert {"kubernetes/order.yaml", "kubernetes/accounts/quotas.yaml"} <= set(written)
    assert b"gcluster.cluster.kubernetes" in written["site.yml"]


def test_a_clouds_own_control_plane_compiles(out: Path, tmp_path: Path) -> None:
    spec = tmp_path / "cluster.yaml"
    spec.write_text(EKS, encoding="utf-8")
    compile_tree(spec, out)
    assert "kubernetes/order.yaml" in tree(out)
    assert not any(answer.is_error for answer in offline_findings(load(spec)))


def test_what_is_returned_is_what_was_written_but_for_the_marker(
    sample: SampleCluster, out: Path
) -> None:
    files = compile_tree(sample.path, out)
    assert [str(file.relative_to(out)) for file in files] == sorted(tree(out).keys() - {MARKER})


def test_the_same_spec_gives_the_same_bytes(sample: SampleCluster, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    compile_tree(sample.path, first)
    compile_tree(sample.path, second)
    assert tree(first) == tree(second)


def test_a_running_cluster_compiles_to_the_same_bytes(
    sample: SampleCluster, tmp_path: Path
) -> None:
    compile_tree(sample.path, tmp_path / "before")
    sample.up()
    compile_tree(sample.path, tmp_path / "after")
    assert tree(tmp_path / "before") == tree(tmp_path / "after")


def test_compiling_makes_no_state(sample: SampleCluster, out: Path) -> None:
    compile_tree(sample.path, out)
    assert list(sample.path.parent.iterdir()) == [sample.path]


def test_secrets_are_named_and_never_shown(sample: SampleCluster, out: Path) -> None:
    sample.up()
    secret = sample.open().vault.reveal("munge")
    compile_tree(sample.path, out)
    assert b"<secret munge>" in tree(out)["site.yml"]
    assert not any(secret in content for content in tree(out).values())


def test_a_folder_of_foreign_files_is_refused_and_left_as_it_is(
    sample: SampleCluster, out: Path
) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("the only copy", encoding="utf-8")
    with pytest.raises(LifecycleError) as error:
        compile_tree(sample.path, out)
    assert error.value.exit_code is Exit.USAGE
    assert tree(out) == {"thesis.txt": b"the only copy"}


def test_a_file_in_the_folders_place_is_refused_and_left_as_it_is(
    sample: SampleCluster, out: Path
) -> None:
    out.write_text("the only copy", encoding="utf-8")
    with pytest.raises(LifecycleError) as error:
        compile_tree(sample.path, out)
    assert error.value.exit_code is Exit.USAGE
    assert out.read_text(encoding="utf-8") == "the only copy"


def test_an_empty_folder_is_taken(sample: SampleCluster, out: Path) -> None:
    out.mkdir()
    assert compile_tree(sample.path, out)


def test_the_folder_one_is_in_is_taken(
    sample: SampleCluster, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out.mkdir()
    monkeypatch.chdir(out)
    compile_tree(sample.path, Path())
    assert (out / "site.yml").is_file()


def test_its_own_folder_is_written_again_without_what_is_no_longer_compiled(
    sample: SampleCluster, out: Path
) -> None:
    text = sample.path.read_text(encoding="utf-8")
    extra = "  more: {site: lab, machine: sim.h100x8, count: 1}\nscheduler"
    sample.path.write_text(text.replace("scheduler", extra), encoding="utf-8")
    compile_tree(sample.path, out)
    assert (out / "groups" / "more.json").is_file()
    sample.write()
    compile_tree(sample.path, out)
    assert not (out / "groups" / "more.json").exists()


def test_a_write_that_breaks_off_leaves_the_old_tree_whole(
    sample: SampleCluster, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_tree(sample.path, out)
    before = tree(out)
    write = Path.write_bytes

    def full_disk(path: Path, data: bytes) -> int:
        if path.name == "gpu.json":
            raise OSError(28, "No space left on device")
        return write(path, data)

    sample.write(count=9)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full_disk)
        with pytest.raises(OSError, match="No space left"):
            compile_tree(sample.path, out)
    assert tree(out) == before


def test_nothing_but_the_tree_is_left_in_its_folder(sample: SampleCluster, tmp_path: Path) -> None:
    folder = tmp_path / "beside"
    folder.mkdir()
    for _ in range(2):
        compile_tree(sample.path, folder / "compiled")
    assert [path.name for path in folder.iterdir()] == ["compiled"]


def test_a_spec_with_errors_writes_nothing(sample: SampleCluster, out: Path) -> None:
    sample.write(pool=", typo: 1")
    with pytest.raises(SpecError):
        compile_tree(sample.path, out)
    assert not out.exists()
