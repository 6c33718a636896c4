"""A real API server takes every compiled object of a built-in kind: strictly, as a dry run.

It finds what schemas don't: words of enumerations, quantities, selectors, CEL that doesn't compile,
names that are too long. Kinds of add-ons are held against their CRDs where those are to be had.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from bench.simulated.api_server import ApiServer

from .compiled import NAMES, Object, objects_of
from .crds import MODULES, crds
from .test_valid import THIRD_PARTY

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.kubernetes_api


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    """Give a running API server, with nothing in it."""
    with ApiServer() as server:
        yield server


def _group(made: Object) -> str:
    """Return an object's API group; "" of the core."""
    group, slash, _ = made["apiVersion"].partition("/")
    return str(group) if slash else ""


def _built_in(made: Object) -> bool:
    """Say whether the bundle's release has an object's kind."""
    return _group(made) not in THIRD_PARTY and not made["kind"].startswith("MutatingAdmission")


def _taken(api: Any, objects: list[Object]) -> None:
    told = api.apply(objects, dry=True)
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == len(objects)


@pytest.mark.parametrize("case", NAMES)
def test_every_built_in_object_is_taken_strictly(api: Any, case: str) -> None:
    built_in = [made for _, made in objects_of(case) if _built_in(made)]
    spaces = [made for made in built_in if made["kind"] == "Namespace"]
    told = api.apply(spaces)
    assert told.returncode == 0, told.stderr
    _taken(api, [made for made in built_in if made["kind"] != "Namespace"])


@pytest.mark.parametrize("group", sorted(MODULES))
def test_objects_of_add_ons_fit_the_crds_that_are_to_be_had(api: Any, group: str) -> None:
    definitions = crds(group)
    told = api.apply(definitions)
    assert told.returncode == 0, told.stderr
    names = [f"crd/{one['metadata']['name']}" for one in definitions]
    api.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    for case in NAMES:
        objects = [made for _, made in objects_of(case) if _group(made) == group]
        for space in sorted({made["metadata"].get("namespace", "default") for made in objects}):
            api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}])
        if objects:
            _taken(api, objects)


def test_what_only_a_server_finds_is_found(api: Any) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "eight"}},
    }
    told = api.apply([quota], dry=True)
    assert told.returncode != 0
    assert "quantities must match" in told.stderr
