"""Published definitions of clusters: no setting is lost in silence, and none is guessed."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.schemas.adopt import published
from tests.schemas.adopt.published import Case, adopted, read_case

from gcluster.schemas.adopt.draft import Adopted, NothingToAdopt, machines_text, spec_text
from gcluster.schemas.adopt.node_lists.openhpc import read_input
from gcluster.schemas.adopt.source import words
from gcluster.schemas.load import load
from gcluster.schemas.structure.decoding import decode_json

NAMES = published.names()
OWN_WORDS = frozenset(
    ["gcluster/v1", "machines.yaml", "aws", "gcp", "bare-metal", "cloud", "here", "head", "nodes",
     "control", "home", "slurm", "kubernetes", "controller", "login", "compute", "nfs", "lustre",
     "object", "local-nvme", "iap", "ssm", "instance-connect", "cluster", "spot", "eks", "gke",
     "jobset", "none"]
)  # fmt: skip
"""What specs are written with, whatever the source: types, roles, names of gcluster's own."""
SAID_TWICE = frozenset({"exclusive"})
"""Settings of which another setting of the same part says the same: OverSubscribe=EXCLUSIVE."""
FACTS: dict[str, frozenset[str]] = {
    # what the tool does where its file says nothing, with the place that says so
    "pcluster-vanilla": frozenset({"/home"}),  # SharedStorage-v3: the head's /home is shared
    "ml-slurm": frozenset({"c2-standard-4", "/home"}),  # variables_controller_instance.tf
    "a3mega-slurm": frozenset({"ubuntu-24.04"}),  # of source_image: ubuntu-accelerator-2404
    "a3ultra-slurm": frozenset({"ubuntu-24.04"}),  # of source_image: ubuntu-accelerator-2404
    "a4high-slurm": frozenset({"ubuntu-24.04"}),  # of source_image: ubuntu-accelerator-2404
    "gke-a3mega": frozenset({"system", "e2-standard-4", "2", "10"}),  # gke-cluster/variables.tf
    "gke-a3ultra": frozenset({"system", "2", "10"}),
    "gke-a4": frozenset({"system", "2", "10"}),
    "hyperpod-slurm": frozenset({"/fsx"}),  # lifecycle_script.py
    "openhpc-rocky9": frozenset({"/home", "/mnt/lustre", "lustre"}),  # its recipes
    "dstack-efa": frozenset({"p5.48xlarge"}),  # the one type of AWS with H100:8
    "dstack-ssh": frozenset({"my-fleet-0", "my-fleet-1"}),  # what dstack calls its instances
    "skypilot-nccl": frozenset({"p4d.24xlarge"}),  # the one type of AWS with A100:8
}


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _changed(data: Any, path: tuple[Any, ...]) -> Any:
    """Return the same with another value at one place."""
    other = copy.deepcopy(data)
    part = other
    for step in path[:-1]:
        part = part[step]
    old = part[path[-1]]
    if isinstance(old, bool):
        part[path[-1]] = not old
    elif isinstance(old, int):
        part[path[-1]] = old + 7
    else:
        part[path[-1]] = f"{old}x7"
    return other


def _as_text(found: Adopted) -> str:
    return json.dumps(
        [found.spec, found.machines, [list(map(str, _row(e))) for e in found.not_carried]]
    )


def _row(entry: Any) -> tuple[str, str, str]:
    return entry.where, entry.why, entry.kind


def _is_setting(case: Case, path: tuple[Any, ...], value: Any) -> bool:
    """Leave out what is no setting: names of parts, scripts' texts, and what only links modules."""
    if not value and value not in (0, False):
        return False
    if path[-1] in SAID_TWICE or "children" in path or path == ("_meta", "profile"):
        return False
    if case.tool == "cluster-toolkit":
        if "settings" not in path:
            return False
        inner = path[path.index("settings") + 1 :]
        return not {"runners", "content", "startup_script"} & set(map(str, inner))
    return True


@pytest.mark.parametrize("name", NAMES)
def test_no_setting_is_lost_in_silence(name: str) -> None:
    """Another value of a setting makes another spec, or another line in the list of what is left.

    What is listed as a part without its values (a script, values that may be secret) is named.
    """
    case = read_case(name)
    data = read_input(case.data) if case.tool == "openhpc" else case.data
    before = _as_text(adopted(case))
    listed = " ".join(f"{each.where}: {each.why}" for each in adopted(case).not_carried)
    silent = []
    for path, value in _leaves(data):
        if not _is_setting(case, path, value):
            continue
        try:
            changed = _changed(data, path)
            after = _as_text(adopted(case, _text(changed) if case.tool == "openhpc" else changed))
        except NothingToAdopt:
            continue
        if after == before and not _named(case, path, listed):
            silent.append(path)
    assert [words(path) for path in silent] == []


def _text(settings: dict[str, Any]) -> str:
    """Write an input.local."""
    lines = []
    for key, value in settings.items():
        of_index = value.items() if isinstance(value, dict) else [("", value)]
        lines += [f'{key}{f"[{i}]" if i else ""}="{one}"' for i, one in of_index]
    return "\n".join(lines)


def _named(case: Case, path: tuple[Any, ...], listed: str) -> bool:
    """Say whether a setting is named in the list, itself or by the part that it is in."""
    if "hostvars" in path:  # values of an inventory's variables are not shown
        host = re.escape(str(path[path.index("hostvars") + 1]))
        left_out = re.search(rf"(: |, ){host}(:|,| )", listed) is not None
        return left_out or f"variable {path[-1]} of" in listed
    steps, prefix = path, r"(^|[ .])"
    if "settings" in path:
        steps = path[path.index("settings") + 1 :]
        module = re.escape(_part(case.data, path[: path.index("settings")])["id"])
        prefix = rf"module {module}: "
        if re.search(rf"module {module} \(", listed):
            return True
    places = [words(tuple(steps[:end])) for end in range(len(steps), 0, -1)]
    return any(re.search(rf"{prefix}{re.escape(place)}(:|$| )", listed) for place in places)


def _part(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        data = data[step]
    return data


@pytest.mark.parametrize("name", NAMES)
def test_no_value_is_guessed(name: str) -> None:
    """Each value of the spec occurs in the source, is what was given, or is listed as a guess."""
    case = read_case(name)
    found = adopted(case)
    output = json.dumps([case.data, case.given, case.provisioning, case.lifecycle]).lower()
    output += " ".join(f"{e.where} {e.why}" for e in found.not_carried if e.kind == "guess").lower()
    output += " ".join(e.where for e in found.not_carried if "specs write names" in e.why).lower()
    allowed = OWN_WORDS | FACTS.get(name, frozenset())
    guessed = []
    for path, value in _leaves({k: v for k, v in found.spec.items() if k != "name"}):
        text = str(value)
        if isinstance(value, bool) or text in allowed or path[0] == "catalog":
            continue
        if path[0] == "hooks" and "script left out here" in text:  # the text around it has tests
            continue
        plain = re.sub(r"[.-]", "", output)  # ubuntu-22.04 is ubuntu2204 to some
        parts = _parts(text.lower())
        if not all(p in output or p in allowed or re.sub(r"[.-]", "", p) in plain for p in parts):
            guessed.append((path, value))
    assert guessed == []


def _parts(text: str) -> list[str]:
    """Split a value into what must occur in the source: numbers without units, words."""
    found = re.fullmatch(r"(\d+) ?(gib|gb|s|m|h|d|mb/s/tib)", text)
    if found is not None:
        return [found[1]]
    return [part for part in re.split(r"[/,:\s]+|gs|(?<=[a-z])-(?=[a-z])", text) if part]


@pytest.mark.parametrize("name", NAMES)
def test_what_the_spec_waits_for_is_listed(name: str, tmp_path: Path) -> None:
    """A spec that validate doesn't take says in its list what is unfinished."""
    found = adopted(read_case(name))
    (tmp_path / "cluster.yaml").write_text(spec_text(found, name))
    if found.machines:
        (tmp_path / "machines.yaml").write_text(machines_text(found, name))
    wrong = [each for each in load(tmp_path / "cluster.yaml").diagnostics if each.is_error]
    waits = [each for each in found.not_carried if each.kind == "unfinished"]
    assert not wrong or waits, [each.summary for each in wrong]


@pytest.mark.parametrize("name", NAMES)
def test_what_blocks_first_is_first_and_each_has_a_reason(name: str) -> None:
    kinds = [each.kind for each in adopted(read_case(name)).not_carried]
    order = {"unfinished": 0, "guess": 1, "lost": 2, "replaced": 3}
    assert kinds == sorted(kinds, key=order.__getitem__)
    assert all(each.why for each in adopted(read_case(name)).not_carried)


def test_the_table_of_the_documentation_is_what_adopt_does_now() -> None:
    page = published.PAGE.read_text()
    assert published.page_with_table(page) == page, "python -m tests.schemas.adopt.published"


def test_the_same_file_gives_the_same_spec() -> None:
    case = read_case("a3mega-slurm")
    assert decode_json(_as_text(adopted(case)), list[Any]) == decode_json(
        _as_text(adopted(case)), list[Any]
    )


def test_a_fleet_of_hosts_gets_no_scheduler_that_it_never_had() -> None:
    found = adopted(read_case("dstack-ssh"))
    assert found.spec["scheduler"] == {"type": "none"}
    assert list(found.spec["pools"]) == ["nodes"]
    assert [each for each in found.not_carried if each.kind == "unfinished"] == []
