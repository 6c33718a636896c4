"""Every input of every example is one that OCI's own models take (the SDK `oci`).

Each resource is held to the model of the call that makes it: names, types, what is required,
enumerations. The provider's names are Terraform's: a table says where they are others. What a model
leaves open, and only the service checks, is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import oci  # type: ignore[import-untyped]
import pytest
from tests.pulumi_double.clouds import InventedCloud
from tests.pulumi_double.replay import replay
from tests.pulumi_double.sites import CloudSite, cloud_sites

SITES = [site for site in cloud_sites() if site.cloud == "oci"]


class Call(NamedTuple):
    """What makes a resource."""

    service: str
    model: str
    beside: frozenset[str] = frozenset()
    """Inputs that are no part of the model: arguments of the call, or the provider's own."""


_CORE = {
    "ClusterNetwork": "CreateClusterNetworkDetails",
    "ComputeCluster": "CreateComputeClusterDetails",
    "ComputeGpuMemoryCluster": "CreateComputeGpuMemoryClusterDetails",
    "InternetGateway": "CreateInternetGatewayDetails",
    "NatGateway": "CreateNatGatewayDetails",
    "NetworkSecurityGroup": "CreateNetworkSecurityGroupDetails",
    "RouteTable": "CreateRouteTableDetails",
    "SecurityList": "CreateSecurityListDetails",
    "ServiceGateway": "CreateServiceGatewayDetails",
    "Subnet": "CreateSubnetDetails",
    "Vcn": "CreateVcnDetails",
    "Volume": "CreateVolumeDetails",
    "VolumeAttachment": "AttachVolumeDetails",
}
CALLS = {kind: Call("core", model) for kind, model in _CORE.items()} | {
    "Bucket": Call("object_storage", "CreateBucketDetails", frozenset({"namespace"})),
    "Budget": Call("budget", "CreateBudgetDetails"),
    "DefaultSecurityList": Call(
        "core",
        "UpdateSecurityListDetails",
        frozenset({"manageDefaultResourceId", "compartmentId"}),
    ),
    "DynamicGroup": Call("identity", "CreateDynamicGroupDetails"),
    "FileStorageLustreFileSystem": Call("lustre_file_storage", "CreateLustreFileSystemDetails"),
    "FileStorageObjectStorageLink": Call(
        "lustre_file_storage",
        "CreateObjectStorageLinkDetails",
        frozenset({"startImportFromObjectTrigger"}),
    ),
    "Instance": Call("core", "LaunchInstanceDetails", frozenset({"preserveBootVolume"})),
    "InstanceConfiguration": Call("core", "CreateInstanceConfigurationDetails"),
    "NetworkSecurityGroupSecurityRule": Call(
        "core", "AddSecurityRuleDetails", frozenset({"networkSecurityGroupId"})
    ),
    "Policy": Call("identity", "CreatePolicyDetails"),
    "Rrset": Call(
        "dns", "UpdateRRSetDetails", frozenset({"zoneNameOrId", "domain", "rtype", "viewId"})
    ),
    "Rule": Call("budget", "CreateAlertRuleDetails", frozenset({"budgetId"})),
    "Tag": Call("identity", "CreateTagDetails", frozenset({"tagNamespaceId"})),
    "TagNamespace": Call("identity", "CreateTagNamespaceDetails"),
}
OTHERWISE = {
    ("Bucket", "accessType"): "publicAccessType",
    ("NetworkSecurityGroupSecurityRule", "stateless"): "isStateless",
    ("VolumeAttachment", "attachmentType"): "type",
}
"""(resource, its input) -> what the API calls it, where that is neither case nor a plural."""
FILLED_IN = {"InternetGateway": {"isEnabled": True}}
"""What the provider gives where nothing is said."""
NAMED = frozenset({"DynamicGroup", "Policy", "TagNamespace"})
"""Kinds whose name is the resource's own where none is given (the provider's autonaming)."""


def complaints(service: str, model: str, value: dict[str, Any], path: str) -> Iterator[str]:
    """Yield what a model of the SDK doesn't take of a value."""
    models = getattr(oci, service).models
    kind = getattr(models, model)
    if hasattr(kind, "get_subtype"):
        kind = getattr(models, kind.get_subtype(_discriminator(kind(), value)))
    made = kind()
    attributes = {name.lower(): own for own, name in made.attribute_map.items()}
    given = set()
    for key, item in value.items():
        own = attributes.get(key.lower()) or attributes.get(key.lower().removesuffix("s"))
        if own is None:
            yield f"{path}.{key}: {kind.__name__} has no such member"
            continue
        given.add(own)
        wanted = made.swagger_types[own]
        yield from _of_type(service, wanted, item, f"{path}.{key}")
        if not isinstance(item, dict | list):
            try:
                setattr(made, own, item)
            except ValueError as error:
                yield f"{path}.{key}: {error}"
    for own in made.attribute_map:
        doc = getattr(type(made), own).__doc__ or ""
        if "**[Required]**" in doc and own not in given and getattr(made, own) is None:
            yield f"{path}: {kind.__name__} requires {made.attribute_map[own]}"


def _discriminator(made: Any, value: dict[str, Any]) -> dict[str, Any]:
    """Return the value as the API names it, for the choice of a subtype."""
    names = {name.lower(): name for name in made.attribute_map.values()}
    told = {names.get(key.lower(), key): item for key, item in value.items()}
    return {name: "NONE" if name == "source" else None for name in names.values()} | told


def _of_type(service: str, wanted: str, item: Any, path: str) -> Iterator[str]:
    if inside := re.fullmatch(r"list\[(.+)\]", wanted):
        if not isinstance(item, list):
            yield f"{path}: a list is wanted"
            return
        for one in item:
            yield from _of_type(service, inside[1], one, path)
    elif wanted.startswith("dict("):
        if not isinstance(item, dict):
            yield f"{path}: a map is wanted"
    elif wanted in _PLAIN:
        if not _PLAIN[wanted](item):
            yield f"{path}: {item!r} is no {wanted}"
    elif isinstance(item, dict):
        yield from complaints(service, wanted, item, path)
    elif not (isinstance(item, str) and wanted == "datetime"):
        yield f"{path}: {item!r} is no {wanted}"


# Numbers and truth values may come as text: the provider turns them.
_PLAIN: dict[str, Callable[[Any], bool]] = {
    "str": lambda item: isinstance(item, str),
    "bool": lambda item: isinstance(item, bool) or item in {"true", "false"},
    "int": lambda item: str(item).isdigit(),
    "float": lambda item: re.fullmatch(r"\d+(\.\d+)?", str(item)) is not None,
    "object": lambda _item: True,
}


def requested(kind: str, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs of a resource as the body of the call that makes it."""
    call = CALLS[kind]
    body = {OTHERWISE.get((kind, k), k): v for k, v in inputs.items() if k not in call.beside}
    named = {"name": name} if kind in NAMED else {}
    return {**named, **FILLED_IN.get(kind, {}), **body}


@pytest.mark.parametrize("site", SITES, ids=[site.id for site in SITES])
def test_oci_takes_every_input(site: CloudSite, tmp_path: Path) -> None:
    found: list[str] = []
    for made in replay(site.recorded(), InventedCloud(tmp_path / "cloud.json")):
        kind = made.resource.type.rpartition(":")[2]
        call, name = CALLS[kind], made.resource.name
        found += complaints(call.service, call.model, requested(kind, name, made.inputs), name)
    assert found == []


def test_an_input_that_no_model_knows_is_seen() -> None:
    given = {"vcnId": 7, "displayName": "x", "shade": "blue"}
    assert sorted(complaints("core", "CreateSubnetDetails", given, "s")) == [
        "s.shade: CreateSubnetDetails has no such member",
        "s.vcnId: 7 is no str",
        "s: CreateSubnetDetails requires compartmentId",
    ]
