"""Every module says what it takes and returns, and takes what it says."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
import running
import yaml

META = {"description", "version_added", "suboptions"}


def options(documented: dict[str, Any]) -> dict[str, Any]:
    """Return documented options in the form of an argument_spec."""
    return {
        name: {key: value for key, value in option.items() if key not in META}
        | ({"options": options(option["suboptions"])} if "suboptions" in option else {})
        for name, option in documented.items()
    }


def without_secrecy(spec: dict[str, Any]) -> dict[str, Any]:
    """Return an argument_spec without what documentation has no word for."""
    return {
        name: {key: value for key, value in option.items() if key != "no_log"}
        | ({"options": without_secrecy(option["options"])} if "options" in option else {})
        for name, option in spec.items()
    }


@pytest.mark.parametrize("name", running.NAMES)
def test_a_module_takes_the_options_that_it_documents(name: str) -> None:
    module = running.module(name)
    documented = yaml.safe_load(module.DOCUMENTATION)
    assert documented["module"] == name
    assert options(documented["options"]) == without_secrecy(module.ARGUMENTS)


@pytest.mark.parametrize("name", running.NAMES)
def test_the_examples_call_the_module_with_what_it_takes(name: str) -> None:
    module = running.module(name)
    tasks = yaml.safe_load(module.EXAMPLES)
    assert tasks
    for task in tasks:
        assert set(task[f"gcluster.cluster.{name}"]) <= set(module.ARGUMENTS)


@pytest.mark.parametrize("name", running.NAMES)
def test_what_is_returned_is_documented(name: str) -> None:
    returned = yaml.safe_load(running.module(name).RETURN) or {}
    assert all({"description", "returned", "type"} <= set(value) for value in returned.values())


def test_ansible_doc_shows_every_module() -> None:
    shown = subprocess.run(
        [
            "ansible-doc", "--json", "--type", "module",
            *(f"gcluster.cluster.{name}" for name in running.NAMES),
        ],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(running.ROOT / "src/gcluster")},
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    found = json.loads(shown.stdout)
    assert set(found) == {f"gcluster.cluster.{name}" for name in running.NAMES}
    assert all(each["doc"]["options"] and each["examples"] for each in found.values())
