"""Clusters are found by path and by name, and a running one whatever became of its file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gcluster.lifecycle.cluster import places
from gcluster.lifecycle.cluster.cluster import SpecError, open_cluster
from gcluster.lifecycle.cluster.index import IndexEntry, find, known_clusters, remember
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.planning.plan import make_plan

from .sample_cluster import SampleCluster, tree


def test_a_path_opens_the_cluster_that_it_describes(sample: SampleCluster) -> None:
    assert open_cluster(str(sample.path)).name == "trial"


def test_the_state_is_next_to_the_spec_unless_the_spec_sets_another_place(
    sample: SampleCluster,
) -> None:
    assert sample.open().state_url == f"file://{sample.state}"


def test_a_cluster_that_came_up_is_found_by_its_name(sample: SampleCluster) -> None:
    sample.up()
    assert open_cluster("trial").spec_path == sample.path


def test_a_name_acts_on_the_file_as_it_is_now(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=2)
    assert open_cluster("trial").spec.pools["gpu"].count == 2


def test_a_name_whose_file_is_gone_acts_on_what_was_applied(sample: SampleCluster) -> None:
    sample.up()
    sample.path.unlink()
    assert open_cluster("trial").spec.pools["gpu"].count == 3


def test_two_clusters_of_one_name_are_reported_apart_by_their_paths(own_places: Path) -> None:
    paths = [own_places / place / "cluster.yaml" for place in ("one", "two")]
    for path in paths:
        SampleCluster(path).up()
    with pytest.raises(LifecycleError) as error:
        open_cluster("trial")
    assert error.value.exit_code is Exit.USAGE
    assert all(str(path) in error.value.diagnostics[0].hint for path in paths)


def test_a_name_means_the_cluster_that_was_not_taken_down(own_places: Path) -> None:
    ended, running = (
        SampleCluster(own_places / place / "cluster.yaml") for place in ("one", "two")
    )
    ended.up()
    running.up()
    ended.down()
    assert open_cluster("trial").spec_path == running.path


def test_a_cluster_brought_up_again_is_found_again(own_places: Path) -> None:
    again, ended = (SampleCluster(own_places / place / "cluster.yaml") for place in ("one", "two"))
    ended.up()
    ended.down()
    again.up()
    again.down()
    again.up()
    assert open_cluster("trial").spec_path == again.path


def test_an_unknown_name_is_refused_with_the_suggested_name(sample: SampleCluster) -> None:
    sample.up()
    with pytest.raises(LifecycleError) as error:
        open_cluster("trail")
    assert error.value.exit_code is Exit.USAGE
    assert error.value.diagnostics[0].hint == 'did you mean "trial"?'


def test_an_unknown_name_on_a_new_machine_requests_the_path(own_places: Path) -> None:
    del own_places
    with pytest.raises(LifecycleError) as error:
        open_cluster("trial")
    assert error.value.diagnostics[0].hint == "give the path of its spec"


def test_a_cluster_whose_state_was_deleted_is_no_longer_known(sample: SampleCluster) -> None:
    sample.up()
    shutil.rmtree(sample.state)
    assert known_clusters() == []


def test_every_error_of_a_spec_is_reported_at_once(sample: SampleCluster) -> None:
    sample.write(pool=", site_typo: 1, quorum: 9")
    with pytest.raises(SpecError) as error:
        sample.open()
    assert error.value.exit_code is Exit.SPEC
    assert len([d for d in error.value.diagnostics if d.is_error]) == 2


def test_a_file_that_is_not_there_is_an_error_of_the_spec(own_places: Path) -> None:
    with pytest.raises(SpecError) as error:
        open_cluster(str(own_places / "absent.yaml"))
    assert error.value.exit_code is Exit.SPEC


@pytest.mark.parametrize("target", ["path", "name"])
@pytest.mark.parametrize("became", ["edited", "wrong", "broken", "gone"])
def test_a_running_cluster_is_what_was_applied_whatever_became_of_its_file(
    sample: SampleCluster, became: str, target: str
) -> None:
    sample.up()
    match became:
        case "edited":
            sample.write(count=2)
        case "wrong":
            sample.write(pool=", typo: 1")
        case "broken":
            sample.path.write_text("name: [trial\n", encoding="utf-8")
        case "gone":
            sample.path.unlink()
    cluster = open_cluster(str(sample.path) if target == "path" else "trial", running=True)
    assert cluster.spec.pools["gpu"].count == 3
    assert cluster.spec_path == sample.path


def test_a_broken_file_that_was_never_applied_is_no_running_cluster(sample: SampleCluster) -> None:
    sample.path.write_text("name: [trial\n", encoding="utf-8")
    with pytest.raises(SpecError):
        sample.open(running=True)


def test_comments_and_the_order_of_keys_do_not_change_the_hash(sample: SampleCluster) -> None:
    before = sample.open().spec_hash
    lines = sample.path.read_text(encoding="utf-8").splitlines()
    (scheduler,) = [line for line in lines if line.startswith("scheduler")]
    lines.remove(scheduler)
    sample.path.write_text("\n".join(["# again", scheduler, *lines]), encoding="utf-8")
    assert sample.open().spec_hash == before


@pytest.mark.parametrize(
    "change", [{"count": 4}, {"pool": ", quorum: 2"}, {"site": ", max_nodes: 9"}, {"name": "other"}]
)
def test_what_changes_the_meaning_changes_the_hash(
    sample: SampleCluster, change: dict[str, object]
) -> None:
    before = sample.open().spec_hash
    sample.write(**change)  # type: ignore[arg-type]  # keys of write, each with its own type
    assert sample.open().spec_hash != before


def test_opening_and_planning_a_new_cluster_leaves_nothing_next_to_the_spec(
    sample: SampleCluster,
) -> None:
    make_plan(sample.open())
    assert list(sample.path.parent.iterdir()) == [sample.path]


def test_planning_makes_no_cluster_known(sample: SampleCluster) -> None:
    make_plan(sample.open())
    assert known_clusters() == []


def test_planning_a_running_cluster_writes_nothing_into_its_state(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=5)
    before = tree(sample.state)
    make_plan(sample.open())
    assert tree(sample.state) == before


def test_the_id_of_a_cluster_is_the_same_for_every_command_after_its_first_up(
    sample: SampleCluster,
) -> None:
    sample.up()
    assert sample.open().id == sample.open(running=True).id


def test_a_cluster_recreated_in_the_same_place_gets_another_id(sample: SampleCluster) -> None:
    sample.up()
    before = sample.open().id
    sample.down()
    shutil.rmtree(sample.state)
    sample.up()
    assert sample.open().id != before


def test_the_warnings_of_a_spec_go_with_its_cluster(sample: SampleCluster) -> None:
    outside = "  idle: {site: lab, machine: sim.h100x8, count: 1}\n"
    text = sample.path.read_text().replace("pools:\n", f"pools:\n{outside}", 1)
    some = "{type: slurm, partitions: {a: {pools: [gpu]}}}"
    sample.path.write_text(text.replace("{type: slurm}", some))
    assert [warning.code for warning in sample.open().warnings] == ["GC507"]


def test_a_spec_whose_state_had_two_identities_is_found_by_its_name(own_places: Path) -> None:
    path, state = own_places / "demo.yaml", own_places / "state"
    state.mkdir()
    for identity in ("1" * 16, "2" * 16):
        entry = IndexEntry(
            id=identity, name="demo", spec_path=str(path), state_url=f"file://{state}"
        )
        remember(entry)
    assert find("demo").id == "2" * 16


def test_a_spec_that_several_clusters_came_from_is_named_once(own_places: Path) -> None:
    for number, path in enumerate(("demo.yaml", "demo.yaml", "other.yaml")):
        state = own_places / f"state{number}"
        state.mkdir()
        identity = str(number) * 16
        remember(IndexEntry(id=identity, name="demo", spec_path=path, state_url=f"file://{state}"))
    with pytest.raises(LifecycleError) as refused:
        find("demo")
    (finding,) = refused.value.diagnostics
    assert (finding.code, finding.hint) == (
        "GC907",
        "give the path of the spec instead: demo.yaml, other.yaml",
    )


def test_a_damaged_entry_of_the_index_hides_no_other(own_places: Path) -> None:
    state = own_places / "state"
    state.mkdir()
    entry = IndexEntry(id="1" * 16, name="demo", spec_path="demo.yaml", state_url=f"file://{state}")
    remember(entry)
    (places.data_home() / "clusters" / f"{'0' * 16}.json").write_bytes(b"{")
    assert find("demo") == entry
