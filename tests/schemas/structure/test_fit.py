"""Structure: the typed fit and the schema agree, and each mistake is one error."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.structure.compose import compose
from gcluster.schemas.structure.document import Document
from gcluster.schemas.structure.errors import structure_errors
from gcluster.schemas.structure.fit import fit
from gcluster.schemas.structure.json_schema import inlined_schema

_EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
_DOCUMENTS = [compose(path.read_text(encoding="utf-8"), file=path.name) for path in _EXAMPLES]
_VALUES: list[Any] = [
    None, True, 0, -1, 4.0, 2.5, "", "x", "X_y", "30m", "30m\n", "name\n", [], {}, ["a"],
    {"provider": "local"}, "8B..1GiB", "٣m", 10**12, "slurm", "-x", "a b",
]  # fmt: skip


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a document."""
    found: list[tuple[Any, Any]] = []
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        found.append((data, key))
        if isinstance(value, dict | list):
            found += _places(value)
    return found


@given(st.sampled_from(_DOCUMENTS), st.randoms(use_true_random=False))
def test_the_types_and_the_schema_agree_on_what_is_right(
    composed: Any, chance: random.Random
) -> None:
    data = copy.deepcopy(composed.document.data)
    for _ in range(chance.randint(0, 2)):
        container, key = chance.choice(_places(data))
        change = chance.choice(["replace", "remove", "rename"])
        if change == "replace" or isinstance(container, list):
            container[key] = chance.choice(_VALUES)
        elif change == "remove":
            del container[key]
        else:
            container[chance.choice(["X", key + "e", key + "\n"])] = container.pop(key)
    fitted = fit(ClusterSpec, Document(data=data, text="", root=0, marks={}), file="t")

    assert (fitted.value is not None) == (fitted.diagnostics == ())
    assert (fitted.value is None) == bool(structure_errors(data, inlined_schema(ClusterSpec)))


_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools: {head: {site: here, role: controller}, gpu: {site: here, machine: sim.h100x8, count: 4}}
scheduler: {type: slurm, partitions: {main: {pools: [gpu], max_time: 1d}}}
users: [{name: ada, uid: 2001}, {name: alan, uid: 2002}]
"""


@pytest.mark.parametrize(
    ("right", "wrong", "summary"),
    [
        ("local}", "local, runtme: podman}",
         'unknown key "runtme" in sites.here: did you mean "runtime"?'),
        ("count: 4", "Count: 4", 'unknown key "Count" in pools.gpu: did you mean "count"?'),
        ("max_time", "max-time",
         'unknown key "max-time" in scheduler.partitions.main: did you mean "max_time"?'),
        ("provider: local", "provider: vsphere", 'unknown sites.here.provider: "vsphere"'),
        (
            "count: 4",
            "count: four",
            'pools.gpu.count: expected a whole number or a mapping (key: value), got text "four"',
        ),
        (
            "count: 4",
            "count: 4.0",
            (
                "pools.gpu.count: expected a whole number or a mapping (key: value), "
                "got the number 4.0"
            ),
        ),
        ("uid: 2001", "uid: 1", "users[0].uid must be at least 1000, got 1"),
        ("pools: [gpu]", "pools: gpu",
         'scheduler.partitions.main.pools: expected a list, got text "gpu"'),
        ("pools: [gpu]", "pools: []",
         "scheduler.partitions.main.pools is empty: at least one is needed"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_error_with_a_plain_message(right: str, wrong: str, summary: str) -> None:
    (found,) = load_text(_SPEC.replace(right, wrong, 1)).diagnostics

    assert found.summary == summary


def test_a_suggestion_can_be_applied_and_fixes_the_file() -> None:
    text = _SPEC.replace("machine:", "machne:").replace("slurm,", "slrm,")
    loaded = load_text(text)
    lines = text.splitlines(keepends=True)
    for found in reversed(loaded.diagnostics):
        assert found.patch is not None
        span = found.patch.span
        line = lines[span.line - 1]
        lines[span.line - 1] = (
            line[: span.column - 1] + found.patch.replacement + line[span.end_column - 1 :]
        )

    assert len(loaded.diagnostics) == 2
    assert "".join(lines) == _SPEC


def test_places_stay_right_after_a_broken_item_is_cut_out() -> None:
    text = _SPEC.replace("uid: 2001}", "uid: x}").replace("alan, uid: 2002", "root, uid: 2002")
    found = load_text(text).diagnostics

    assert [(d.code, d.path) for d in found] == [
        ("GC003", ("users", 0, "uid")),
        ("GC513", ("users", 1, "name")),
    ]
    assert found[1].span is not None
    assert found[1].span.column > found[0].span.column if found[0].span else False
