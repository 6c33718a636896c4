"""Every input of Azure's compute resources is one that its own models take (azure-mgmt-compute).

Names, types, required members and enumerations of each machine, scale set, disk and encryption set
of every example. Networks, storage and the rest have no model among gcluster's dependencies; their
programs are held to the provider's own types by mypy. What a model leaves open is not seen.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from azure.mgmt.compute import models
from tests.pulumi_double.clouds import InventedCloud
from tests.pulumi_double.replay import replay
from tests.pulumi_double.sites import CloudSite, cloud_sites

SITES = [site for site in cloud_sites() if site.cloud == "azure"]
KINDS = ("VirtualMachine", "VirtualMachineScaleSet", "Disk", "DiskEncryptionSet")
_OPEN = (models.VirtualMachineSizeTypes,)
"""Enumerations that stopped being complete: the service takes sizes that came later."""
_PLAIN: dict[type, type | tuple[type, ...]] = {str: str, bool: bool, int: int, float: (int, float)}


@cache
def members(model: type) -> dict[str, Any]:
    """Return the members of a model by the API's names; those below `properties` stand beside."""
    found: dict[str, Any] = {}
    names = {**vars(typing), "_models": models, "datetime": __import__("datetime")}
    for kind in reversed(model.__mro__):
        fields = {k: f for k, f in vars(kind).items() if hasattr(f, "_rest_name_input")}
        hints = typing.get_type_hints(kind, names) if fields else {}
        for own, field in fields.items():
            found[field._rest_name_input or own] = hints[own]  # noqa: SLF001  # nothing public says it
    inside = found.pop("properties", None)
    return {**members(_alternatives(inside)[0]), **found} if inside is not None else found


def _alternatives(hint: Any) -> list[Any]:
    """Return the types that a member may have, None left out."""
    is_union = typing.get_origin(hint) in {typing.Union, types.UnionType}
    return (
        [each for each in typing.get_args(hint) if each is not type(None)] if is_union else [hint]
    )


def _is_optional(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


def complaints(hint: Any, value: Any, path: str) -> Iterator[str]:
    """Yield what the type of a member doesn't take of a value."""
    kinds = _alternatives(hint)
    enums = [k for k in kinds if isinstance(k, type) and issubclass(k, enum.Enum)]
    if enums:
        yield from _of_enums(enums, value, path)
        return
    (kind,) = kinds
    if typing.get_origin(kind) is list:
        for item in value if isinstance(value, list) else ():
            yield from complaints(typing.get_args(kind)[0], item, path)
        if not isinstance(value, list):
            yield f"{path}: a list is wanted"
    elif typing.get_origin(kind) is dict:
        # The provider makes the map of identities out of a list of their ids.
        if not isinstance(value, dict) and not path.endswith(".userAssignedIdentities"):
            yield f"{path}: a map is wanted"
    elif kind in _PLAIN:
        if not isinstance(value, _PLAIN[kind]) or (kind is int and isinstance(value, bool)):
            yield f"{path}: {value!r} is no {kind.__name__}"
    elif isinstance(value, dict):
        yield from of_model(kind, value, path)
    else:
        yield f"{path}: {value!r} is no {kind.__name__}"


def _of_enums(enums: list[type[enum.Enum]], value: Any, path: str) -> Iterator[str]:
    allowed = [each.value for kind in enums for each in kind]
    if value not in allowed and not set(enums) & set(_OPEN):
        yield f"{path}: {value} is none of {allowed}"


def of_model(model: type, value: dict[str, Any], path: str) -> Iterator[str]:
    """Yield what a model doesn't take of a map."""
    known = members(model)
    for key, item in value.items():
        if key in known:
            yield from complaints(known[key], item, f"{path}.{key}")
        else:
            yield f"{path}.{key}: {model.__name__} has no such member"
    for key, hint in known.items():
        if not _is_optional(hint) and key not in {*value, "id", "name", "type"}:
            yield f"{path}: {model.__name__} requires {key}"


@pytest.mark.parametrize("site", SITES, ids=[site.id for site in SITES])
def test_azure_takes_every_input_of_machines_and_disks(site: CloudSite, tmp_path: Path) -> None:
    found: list[str] = []
    for made in replay(site.recorded(), InventedCloud(tmp_path / "cloud.json")):
        kind = made.resource.type.rpartition(":")[2]
        if kind in KINDS:
            body = {k: v for k, v in made.inputs.items() if k != "resourceGroupName"}
            found += of_model(getattr(models, kind), body, made.resource.name)
    assert found == []


def test_an_input_that_no_model_knows_is_seen() -> None:
    given = {"location": 7, "creationData": {"createOption": "Emptied"}, "shade": "blue"}
    assert [said.partition(" is none of")[0] for said in of_model(models.Disk, given, "d")] == [
        "d.location: 7 is no str",
        "d.creationData.createOption: Emptied",
        "d.shade: Disk has no such member",
    ]
