"""Every input of every example is one that Google's own discovery documents take.

Each resource becomes the call that the provider makes for it (tests/google_double/requests), with
ids of the real form; then each call is checked against the document of its service: names, types,
formats, enumerations, patterns, what is required, what only Google may write. What gcluster
requests by itself is checked against the same documents by the double that answers it
(google_double).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google_double import Google
from pulumi_gcp import lustre
from tests.google_double.documents import Call, complaints
from tests.google_double.requests import UNDESCRIBED, request
from tests.pulumi_double.clouds import InventedCloud
from tests.pulumi_double.replay import replay
from tests.pulumi_double.sites import cloud_sites

from gcluster.stacks.gcp.api import Answer, GoogleError
from gcluster.stacks.pulumi.component import camel_case
from gcluster.stacks.pulumi.recording.graph import RecordedGraph

GRAPHS: dict[str, Callable[[], RecordedGraph]] = {
    site.id: site.recorded for site in cloud_sites() if site.cloud == "gcp"
}


def calls(graph: RecordedGraph, folder: Path) -> list[tuple[str, Call]]:
    """Return (resource, the call that makes it) for all that the documents describe."""
    return [
        (made.resource.name, request(made.resource.type, made.resource.name, made.inputs))
        for made in replay(graph, InventedCloud(folder / "cloud.json"))
        if made.resource.type not in UNDESCRIBED
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_google_takes_every_input(name: str, tmp_path: Path) -> None:
    found = [
        f"{resource} {call.method}: {answer}"
        for resource, call in calls(GRAPHS[name](), tmp_path)
        for answer in complaints(call)
    ]
    assert found == []


_FORMS = {
    "instanceId": "[a-z]([-a-z0-9]{0,61}[a-z0-9])?",
    "filesystem": "[A-Za-z0-9]{1,8}",
    "location": r"[a-z]+-[a-z]+\d-[a-z]",
    "network": "projects/[^/]+/global/networks/[^/]+",
    "capacityGib": r"\d{4,7}",
    "perUnitStorageThroughput": "125|250|500|1000",
}
"""Forms of inputs of Managed Lustre, as pulumi_gcp.lustre.InstanceArgs says them (10.0)."""


def test_managed_lustre_gets_the_provider_s_settings(tmp_path: Path) -> None:
    """No document describes it: names, what is required and forms are those of typed arguments."""
    taken = inspect.signature(lustre.InstanceArgs.__init__).parameters
    names = {camel_case(name): one for name, one in taken.items() if name != "__self__"}
    seen = 0
    for name, graph in GRAPHS.items():
        for made in replay(graph(), InventedCloud(tmp_path / f"{name}.json")):
            if made.resource.type in UNDESCRIBED:
                seen += 1
                given = made.inputs
                assert given.keys() <= names.keys()
                assert {n for n, one in names.items() if one.default is one.empty} <= given.keys()
                for key in _FORMS.keys() & given.keys():
                    assert re.fullmatch(_FORMS[key], given[key]), key
                assert 9000 <= int(given["capacityGib"]) <= 7_632_000
    assert seen


def _leaves(value: Any) -> list[tuple[Any, Any]]:
    """Return (holder, key) of every member of a body, at any depth."""
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    if not isinstance(value, dict):
        return []
    return [(value, key) for key in value] + [x for v in value.values() for x in _leaves(v)]


_FREE = ("labels", "resourceLabels", "metadata")
"""Members whose keys are the user's own."""


def test_each_member_that_is_renamed_is_seen(tmp_path: Path) -> None:
    unseen = []
    for resource, call in calls(GRAPHS["example-gcp-a3-mega-slurm-central"](), tmp_path):
        free = [id(holder[key]) for holder, key in _leaves(call.body) if key in _FREE]
        for holder, key in _leaves(call.body):
            if id(holder) not in free:
                holder[f"{key}x"] = holder.pop(key)
                if not list(complaints(call)):
                    unseen.append(f"{resource}: {key}")
                holder[key] = holder.pop(f"{key}x")
    assert unseen == []


def test_what_no_document_has_is_seen() -> None:
    body = {
        "sizeGb": "large", "architecture": "VAX", "users": ["x"], "labels": [], "shade": "blue",
        "physicalBlockSizeBytes": 4096,
    }  # fmt: skip
    given = Call("compute.disks.insert", {"project": "P!", "colour": "blue"}, body)
    assert [
        answer.partition(" does not")[0].partition(" is none")[0] for answer in complaints(given)
    ] == [
        "project: P!",
        "colour: compute.disks.insert has no such parameter",
        "compute.disks.insert requires zone",
        "sizeGb: 'large' is no int64",
        "architecture: VAX",
        "users: only Google writes it",
        "labels: [] is no this object",
        "shade: Disk has no such member",
        "compute.disks.insert requires name",
    ]


class _Anything(Answer, frozen=True):
    pass


def test_the_double_of_google_refuses_what_the_documents_do_not_take() -> None:
    google = Google()
    api = google.api()
    path = f"{api.in_zone('us-central1-a')}/instances/bulkInsert"
    wrong = {"labelz": {}}
    try:
        with pytest.raises(GoogleError, match="labelz"):
            api.call(_Anything, path, method="POST", query={"requestId": "1"}, body=wrong)
    finally:
        google.close()
