"""What the OCI provider requests from OCI for each resource type of the programs.

Written after the documentation of pulumi-oci 5 and the models of OCI's SDK; row by row it was not
compared with the provider's source. Its names are the API's but for case and plurals, which
`operations.as_named` turns; where they are others a row says so.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from .operations import Operation, as_named, operations

Json = dict[str, Any]  # a request's JSON
Act = Literal["create", "get", "delete"]


class Kind(msgspec.Struct, frozen=True):
    """How a type is made, found again and removed; {} in names of operations is the noun."""

    client: str
    noun: str
    create: str = "create_{}"
    get: str = "get_{}"
    delete: str = "delete_{}"
    """"" where the provider removes nothing."""
    beside: frozenset[str] = frozenset()
    """Inputs that are in no body: parts of the path, or the provider's own."""
    path: dict[str, str] = {}
    """Parameter of the path -> input that it is; what is in none is the id."""
    names: dict[str, str] = {}
    """Input -> what the API calls it, where that is neither case nor a plural."""
    inside: dict[tuple[str, str], str] = {}
    """(input, member of it) -> what the API calls the member."""
    fixed: Json = {}
    """What the provider gives where nothing is said."""
    wrap: tuple[str, str] | None = None
    """(member, model of its items) of a body that is a list of one."""
    imported: re.Pattern[str] | None = None
    """The id by which the provider imports it, where it isn't OCI's own; groups are inputs."""
    autonamed: bool = False
    """Its `name` is the resource's own with something random where none is given."""

    def operation(self, act: Act) -> Operation:
        """Return what is called to do something with it."""
        words: dict[Act, str] = {"create": self.create, "get": self.get, "delete": self.delete}
        return operations(self.client)[words[act].format(self.noun)]


class Request(msgspec.Struct, frozen=True):
    """A call of OCI."""

    operation: Operation
    path: str
    body: Json | None = None


def request(type_: str, act: Act, inputs: Json, *, identifier: str = "") -> Request:
    """Return the call that does something with a resource.

    Args:
        type_: oci:Core/vcn:Vcn.
        act: what is done.
        inputs: as the program gives them, with ids of the real form.
        identifier: of what is there already.

    Raises:
        KeyError: no row.
    """
    kind = KINDS[type_]
    one = kind.operation(act)
    given = {parameter: inputs[key] for parameter, key in kind.path.items() if key in inputs}
    path = re.sub(r"\{(\w+)\}", lambda m: str(given.get(m[1], identifier)), one.path)
    if act == "create":
        return Request(one, path, _body(kind, one, inputs))
    if act == "delete" and kind.wrap is not None:
        return Request(one, path, {"securityRuleIds": [identifier]})
    return Request(one, path)


def _body(kind: Kind, one: Operation, inputs: Json) -> Json:
    body = {kind.names.get(k, k): v for k, v in inputs.items() if k not in kind.beside}
    for (outer, member), theirs in kind.inside.items():
        if member in body.get(outer, {}):
            inner = dict(body[outer])
            body[outer] = {theirs: inner.pop(member), **inner}
    body = {**kind.fixed, **body}
    if kind.wrap is None:
        return as_named(one.service, one.body, body)
    member, model = kind.wrap
    return {member: [as_named(one.service, model, body)]}


def _network(noun: str, **more: Any) -> Kind:
    return Kind("core.VirtualNetworkClient", noun, **more)


_COMPUTE, _MANAGEMENT = "core.ComputeClient", "core.ComputeManagementClient"
_FILES = "file_storage.FileStorageClient"
_LUSTRE = "lustre_file_storage.LustreFileStorageClient"
_RULES = "network_security_group_security_rules"
_RECORD = ("zoneNameOrId", "domain", "rtype")
KINDS: dict[str, Kind] = {
    "oci:Budget/budget:Budget": Kind("budget.BudgetClient", "budget"),
    "oci:Budget/rule:Rule": Kind(
        "budget.BudgetClient", "alert_rule", beside=frozenset({"budgetId"}),
        path={"budgetId": "budgetId"},
        imported=re.compile("budgets/(?P<budgetId>[^/]+)/alertRules/(?P<id>[^/]+)"),
    ),
    "oci:Core/clusterNetwork:ClusterNetwork": Kind(
        _MANAGEMENT, "cluster_network", delete="terminate_{}"
    ),
    "oci:Core/computeCluster:ComputeCluster": Kind(_COMPUTE, "compute_cluster"),
    "oci:Core/computeGpuMemoryCluster:ComputeGpuMemoryCluster": Kind(
        _COMPUTE, "compute_gpu_memory_cluster"
    ),
    "oci:Core/defaultSecurityList:DefaultSecurityList": _network(
        "security_list", create="update_{}", delete="",
        beside=frozenset({"manageDefaultResourceId", "compartmentId"}),
        path={"securityListId": "manageDefaultResourceId"},
    ),
    "oci:Core/instance:Instance": Kind(
        _COMPUTE, "instance", create="launch_{}", delete="terminate_{}",
        beside=frozenset({"preserveBootVolume"}),
        inside={("sourceDetails", "sourceId"): "imageId"},  # of the source type "image"
    ),
    "oci:Core/instanceConfiguration:InstanceConfiguration": Kind(
        _MANAGEMENT, "instance_configuration"
    ),
    "oci:Core/internetGateway:InternetGateway": _network(
        "internet_gateway", fixed={"isEnabled": True}
    ),
    "oci:Core/natGateway:NatGateway": _network("nat_gateway"),
    "oci:Core/networkSecurityGroup:NetworkSecurityGroup": _network("network_security_group"),
    "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule": _network(
        _RULES, create="add_{}", get="list_{}", delete="remove_{}",
        beside=frozenset({"networkSecurityGroupId"}), names={"stateless": "isStateless"},
        path={"networkSecurityGroupId": "networkSecurityGroupId"},
        wrap=("securityRules", "AddSecurityRuleDetails"),
        imported=re.compile(
            "networkSecurityGroups/(?P<networkSecurityGroupId>[^/]+)/securityRules/(?P<id>[^/]+)"
        ),
    ),
    "oci:Core/routeTable:RouteTable": _network("route_table"),
    "oci:Core/securityList:SecurityList": _network("security_list"),
    "oci:Core/serviceGateway:ServiceGateway": _network("service_gateway"),
    "oci:Core/subnet:Subnet": _network("subnet"),
    "oci:Core/vcn:Vcn": _network("vcn"),
    "oci:Core/volume:Volume": Kind("core.BlockstorageClient", "volume"),
    "oci:Core/volumeAttachment:VolumeAttachment": Kind(
        _COMPUTE, "volume_attachment", create="attach_volume", delete="detach_volume",
        names={"attachmentType": "type"},
    ),
    "oci:Dns/rrset:Rrset": Kind(
        "dns.DnsClient", "rr_set", create="update_{}", beside=frozenset({*_RECORD, "viewId"}),
        path={name: name for name in _RECORD},
    ),
    "oci:FileStorage/export:Export": Kind(_FILES, "export"),
    "oci:FileStorage/fileSystem:FileSystem": Kind(_FILES, "file_system"),
    "oci:FileStorage/mountTarget:MountTarget": Kind(_FILES, "mount_target"),
    "oci:Identity/dynamicGroup:DynamicGroup": Kind(
        "identity.IdentityClient", "dynamic_group", autonamed=True
    ),
    "oci:Identity/policy:Policy": Kind("identity.IdentityClient", "policy", autonamed=True),
    "oci:Identity/tag:Tag": Kind(
        "identity.IdentityClient", "tag", beside=frozenset({"tagNamespaceId"}),
        path={"tagNamespaceId": "tagNamespaceId", "tagName": "name"},
        imported=re.compile("tagNamespaces/(?P<tagNamespaceId>[^/]+)/tags/(?P<name>[^/]+)"),
    ),
    "oci:Identity/tagNamespace:TagNamespace": Kind(
        "identity.IdentityClient", "tag_namespace", autonamed=True
    ),
    "oci:Lustre/fileStorageLustreFileSystem:FileStorageLustreFileSystem": Kind(
        _LUSTRE, "lustre_file_system"
    ),
    "oci:Lustre/fileStorageObjectStorageLink:FileStorageObjectStorageLink": Kind(
        _LUSTRE, "object_storage_link", beside=frozenset({"startImportFromObjectTrigger"})
    ),
    "oci:ObjectStorage/bucket:Bucket": Kind(
        "object_storage.ObjectStorageClient", "bucket", beside=frozenset({"namespace"}),
        path={"namespaceName": "namespace", "bucketName": "name"},
        names={"accessType": "publicAccessType"},
        imported=re.compile("n/(?P<namespace>[^/]+)/b/(?P<name>[^/]+)"),
    ),
}  # fmt: skip
