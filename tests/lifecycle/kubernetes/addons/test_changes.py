"""What is to come, change and go follows from records and from what is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.publisher import Publisher, published

from gcluster.lifecycle.kubernetes.addons import changes as together
from gcluster.lifecycle.kubernetes.addons.changes import (
    AddonChanges,
    DesiredAddon,
    addon_changes,
    desired_addons,
)
from gcluster.lifecycle.kubernetes.addons.ownership import fields_of
from gcluster.lifecycle.kubernetes.addons.record import (
    FIELDS,
    Placed,
    Record,
    record_of,
    records_of,
)
from gcluster.lifecycle.kubernetes.objects import ObjectKey
from gcluster.lifecycle.status.drift.kubernetes import WHOLE, judge

from . import charts
from .lab import NEEDED, entry, facts_of, write

KEY = ObjectKey("apps", "Deployment", "widgets-system", "manager")
MINE = '[{"manager":"gcluster-addons","operation":"Apply","fieldsV1":{"f:spec":{"f:replicas":{}}}}]'
TAKEN = (
    '[{"manager":"gcluster-addons","operation":"Apply","fieldsV1":{"f:spec":{}}},'
    '{"manager":"kubectl-edit","operation":"Update","time":"2026-11-01T10:00:00Z",'
    '"fieldsV1":{"f:spec":{"f:replicas":{}}}}]'
)


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with published() as content:
        yield content


def desired(folder: Path, publisher: Publisher, **result: object) -> tuple[DesiredAddon, ...]:
    answer = entry(publisher, "widgets", charts.full()) | result
    return desired_addons(facts_of(write(folder, answer), *NEEDED))


def record(one: DesiredAddon, **result: object) -> Record:
    whole = Record(
        addon="widgets",
        version="1.0.0",
        content=one.content,
        installed=True,
        applied=one.content,
        kinds=("deployments.apps",),
        objects=(Placed(*KEY, fields=fields_of(MINE)),),
    )
    return msgspec.structs.replace(whole, **result)


def test_what_has_no_record_comes(tmp_path: Path, publisher: Publisher) -> None:
    assert addon_changes(desired(tmp_path, publisher), {}, ()).lines() == (
        "add add-on widgets 1.0.0",
    )


def test_what_is_as_recorded_and_there_is_left_alone(tmp_path: Path, publisher: Publisher) -> None:
    (one,) = desired(tmp_path, publisher)
    found = addon_changes((one,), {"widgets": record(one)}, {("widgets", KEY)})
    assert (found.lines(), found.pending) == ((), ())


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ({"digest": "sha256:" + "0" * 64}, "change add-on widgets: its values or images"),
        ({"images": {"a:1": "sha256:" + "0" * 64}}, "change add-on widgets: its values or images"),
        ({"version": "2.0.0", "digest": "sha256:" + "0" * 64}, "change add-on widgets: 1.0.0 -> 2"),
    ],
    ids=["digest", "images", "version"],
)
def test_what_is_rendered_from_something_else_changes(
    tmp_path: Path, publisher: Publisher, result: dict[str, object], line: str
) -> None:
    (before,) = desired(tmp_path, publisher)
    after = desired(tmp_path, publisher, **result)
    found = addon_changes(after, {"widgets": record(before)}, {("widgets", KEY)})
    assert found.lines()[0].startswith(line)
    assert found.only_put_back().pending == ()


def test_what_was_cut_off_is_done_again(tmp_path: Path, publisher: Publisher) -> None:
    (one,) = desired(tmp_path, publisher)
    found = addon_changes((one,), {"widgets": record(one, content="")}, {("widgets", KEY)})
    assert found.lines() == ("change add-on widgets: 1.0.0, which was cut off",)


def test_an_object_labelled_for_another_add_on_counts_as_deleted(
    tmp_path: Path, publisher: Publisher
) -> None:
    (one,) = desired(tmp_path, publisher)
    found = addon_changes((one,), {"widgets": record(one)}, {("other", KEY)})
    assert found.lines() == ("put back of add-on widgets: Deployment widgets-system/manager",)


def test_a_field_that_was_taken_over_is_put_back_but_makes_no_plan(
    tmp_path: Path, publisher: Publisher
) -> None:
    (one,) = desired(tmp_path, publisher)
    there = {("widgets", KEY): fields_of(TAKEN)}
    found = addon_changes((one,), {"widgets": record(one)}, there.keys(), there)
    assert found.lines() == ()
    assert [each.chosen.addon.name for each in found.pending] == ["widgets"]


def test_a_record_comes_back_as_it_was_written_and_one_written_over_is_cut_off(
    tmp_path: Path, publisher: Publisher
) -> None:
    (one,) = desired(tmp_path, publisher)
    whole = record(one)
    data = whole.to_object("lab")["data"]
    row = {name: data.get(name, "") for name in FIELDS} | {"addon": "widgets", "kind": "ConfigMap"}
    beside = dict.fromkeys(FIELDS, "") | {
        "kind": "Secret", "addon": "widgets", "applied": one.content
    }  # fmt: skip
    assert records_of([row, beside]) == [whole]
    assert records_of([row]) == [msgspec.structs.replace(whole, applied="")]
    assert record_of(row | {"objects": "[["}).content == ""


def row(*fields: str) -> str:
    return "\x1f".join(fields) + "\x1e"


def test_drift_names_what_was_deleted_who_wrote_to_what_and_what_never_came(
    tmp_path: Path, publisher: Publisher
) -> None:
    (one,) = desired(tmp_path, publisher)
    gone = Placed("", "ConfigMap", "widgets-system", "settings")
    whole = record(one)
    data = msgspec.structs.replace(whole, objects=(*whole.objects, gone)).to_object("lab")["data"]
    records = answer(data, "")
    there = row("apps/v1", "Deployment", "widgets-system", "manager", "widgets", TAKEN)
    found = list(judge(records, there, ["widgets", "jobset"]))
    assert [(d.where, d.name, d.now, d.who, d.fixable) for d in found] == [
        ("add-on", "jobset", "not there", "", False),
        ("Deployment", "widgets-system/manager", "changed", "kubectl-edit", True),
        ("ConfigMap", "widgets-system/settings", "not there", "", True),
    ]
    whole_row = row("apps/v1", "Deployment", "widgets-system", "manager", "widgets", MINE)
    (still,) = judge(records, whole_row, ["widgets"])
    assert still.where == "ConfigMap"


def answer(data: dict[str, str], applied: str | None) -> str:
    """Return rows of a record and, unless None, of its Secret, "" for its own content."""
    record = ["ConfigMap", "widgets", *(data[name] for name in list(FIELDS)[2:-1]), ""]
    if applied is None:
        return row(*record)
    return row(*record) + row("Secret", "widgets", *[""] * 5, applied or data["content"])


def test_where_what_was_applied_is_lost_drift_fixes_nothing_of_it(
    tmp_path: Path, publisher: Publisher
) -> None:
    (one,) = desired(tmp_path, publisher)
    data = record(one).to_object("lab")["data"]
    found = list(judge(answer(data, None), "", ["widgets"]))
    assert [(d.where, d.now, d.fixable, d.hint) for d in found] == [
        ("add-on", "what was applied is lost", False, WHOLE),
        ("Deployment", "not there", False, WHOLE),
    ]


def test_of_an_add_on_both_what_was_deleted_and_what_was_changed_is_put_back(
    tmp_path: Path, publisher: Publisher
) -> None:
    (one,) = desired(tmp_path, publisher)
    gone = Placed("", "ConfigMap", "widgets-system", "settings")
    whole = record(one)
    both = msgspec.structs.replace(whole, objects=(*whole.objects, gone))
    there = {("widgets", KEY): fields_of(TAKEN)}
    found = addon_changes((one,), {"widgets": both}, there.keys(), there)
    assert set(found.put_back("widgets")) == {KEY, gone.key}
    assert (found.pending, found.rendered) == ((one,), ())


def test_nodes_are_awaited_only_where_the_pod_network_comes_or_changes() -> None:
    assert together.moves_network(AddonChanges(added=("cilium",)))
    assert together.moves_network(AddonChanges(changed={"tigera-operator": "1 -> 2"}))
    assert not together.moves_network(AddonChanges(added=("widgets",), lost={"cilium": (KEY,)}))
