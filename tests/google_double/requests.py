"""What the Google provider requests from Google's API for each resource type of the programs.

Written after the documentation of pulumi-gcp 10 and the discovery documents; row by row it was not
compared with the provider's source. Its names are the API's, but where a table here says otherwise,
each with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .documents import Call

Json = dict[str, Any]  # a request's JSON


class UnknownTypeError(Exception):
    """A type that has no row here."""


class Kind(msgspec.Struct, frozen=True):
    """What makes a resource."""

    method: str
    beside: dict[str, str] = {}
    """Input -> parameter of the path or query that it becomes; "" where it is the provider's own,
    and in no call. "{project}" and the like are filled in."""
    names: dict[str, str] = {}
    """Path of an input -> what the API calls it: "a.b" is nested, "a[]" a list of one."""
    finish: Callable[[str, Json, Json], Json] | None = None
    """(name, body, inputs) -> body, for what is more than another name."""
    named: bool = True
    """The API's `name` is the resource's own where none is given."""
    fixed: dict[str, str] = {}
    """Parameter -> template of inputs."""


def request(type_: str, name: str, inputs: Json) -> Call:
    """Return the call that makes a resource.

    Args:
        type_: gcp:compute/network:Network.
        name: what it is called where no input says so (the provider's autonaming).
        inputs: as the program gives them, with ids of the real form.

    Raises:
        UnknownTypeError: no row.
    """
    if type_ not in KINDS:
        raise UnknownTypeError(f"no request is known for {type_}")
    kind = KINDS[type_]
    parameters = {theirs: inputs[k] for k, theirs in kind.beside.items() if theirs and k in inputs}
    parameters |= {key: template.format_map(inputs) for key, template in kind.fixed.items()}
    body = _renamed({k: v for k, v in inputs.items() if k not in kind.beside}, kind.names, "")
    if kind.named:
        body.setdefault("name", name)
    if kind.finish is not None:
        body = kind.finish(name, body, inputs)
    return Call(kind.method, parameters, body)


def _renamed(value: Any, names: dict[str, str], path: str) -> Any:
    if isinstance(value, list):
        return [_renamed(item, names, path) for item in value]
    if not isinstance(value, dict):
        return value
    made: Json = {}
    for key, item in value.items():
        where = f"{path}.{key}".lstrip(".")
        put = made
        *outer, last = names.get(where, key).split(".") if where in names else [key]
        for part in outer:
            put = put.setdefault(part, {})
        given = _renamed(item, names, where)
        if last.endswith("[]"):
            last, given = last.removesuffix("[]"), [given]
        if isinstance(put.get(last), dict) and isinstance(given, dict):
            put[last] |= given
        else:
            put[last] = given
    return made


def _template(name: str, body: Json, inputs: Json) -> Json:
    """Put all below `properties`, and metadata, tags and reservations into the API's forms."""
    del inputs
    made = {k: v for k, v in body.items() if k != "name"}
    if "metadata" in made:  # a map in Terraform
        made["metadata"] = {"items": [{"key": k, "value": v} for k, v in made["metadata"].items()]}
    if affinity := made.get("reservationAffinity"):  # key and values are in a block of their own
        made["reservationAffinity"] = {**affinity.pop("specificReservation", {}), **affinity}
    return {"name": body.get("name", name), "properties": made}


def _under(member: str, *beside: str) -> Callable[[str, Json, Json], Json]:
    """Return what puts a body below a member, except for the members next to it."""

    def finish(name: str, body: Json, inputs: Json) -> Json:
        del name, inputs
        inside = {k: v for k, v in body.items() if k not in beside}
        return {**{k: v for k, v in body.items() if k in beside}, member: inside}

    return finish


def _nat(name: str, body: Json, inputs: Json) -> Json:
    """A NAT is a part of its router: `patch` with it."""
    del name, inputs
    return {"nats": [body]}


def _grant(policy: str) -> Callable[[str, Json, Json], Json]:
    """Return what writes a member into the policy of a thing, which is read and written whole."""

    def finish(name: str, body: Json, inputs: Json) -> Json:
        del name, inputs
        found = {"bindings": [{"role": body["role"], "members": [body["member"]]}]}
        return {policy: found} if policy else found

    return finish


def _record(name: str, body: Json, inputs: Json) -> Json:
    del name, inputs
    return {"additions": [body]}


def _budget(name: str, body: Json, inputs: Json) -> Json:
    """Labels are lists of one value in the API."""
    del name, inputs
    labels = body.get("budgetFilter", {}).get("labels", {})
    if labels:
        body["budgetFilter"]["labels"] = {key: [value] for key, value in labels.items()}
    return body


def _disk(name: str, body: Json, inputs: Json) -> Json:
    del name
    if "type" in body:  # the provider finds the type's own address
        zone = f"projects/{inputs['project']}/zones/{inputs['zone']}"
        body["type"] = f"{zone}/diskTypes/{body['type']}"
    return body


def _members(name: str, body: Json, inputs: Json) -> Json:
    """Machines are added to a group when it is there, by a call of its own."""
    del name, inputs
    body.pop("instances", None)
    return body


_PROJECT = {"project": "project"}
_REGION = {**_PROJECT, "region": "region"}
_ZONE = {**_PROJECT, "zone": "zone"}
KINDS: dict[str, Kind] = {
    "gcp:billing/budget:Budget": Kind(
        "billingbudgets.billingAccounts.budgets.create", {"billingAccount": ""},
        fixed={"parent": "billingAccounts/{billingAccount}"}, finish=_budget, named=False,
    ),
    "gcp:compute/attachedDisk:AttachedDisk": Kind(
        "compute.instances.attachDisk", {**_ZONE, "instance": "instance"}, {"disk": "source"},
        named=False,
    ),
    "gcp:compute/disk:Disk": Kind(
        "compute.disks.insert", _ZONE, {"size": "sizeGb"}, finish=_disk
    ),
    "gcp:compute/firewall:Firewall": Kind(
        "compute.firewalls.insert", _PROJECT,
        {"allows": "allowed", "allows.protocol": "IPProtocol"},
    ),
    "gcp:compute/forwardingRule:ForwardingRule": Kind(
        "compute.forwardingRules.insert", _REGION, {"ipProtocol": "IPProtocol"}
    ),
    "gcp:compute/globalAddress:GlobalAddress": Kind("compute.globalAddresses.insert", _PROJECT),
    "gcp:compute/instanceFromTemplate:InstanceFromTemplate": Kind(
        "compute.instances.insert",
        {**_ZONE, "sourceInstanceTemplate": "sourceInstanceTemplate", "allowStoppingForUpdate": ""},
        {"resourcePolicies": "resourcePolicies[]"},  # at most one, which the bridge makes flat
    ),
    "gcp:compute/instanceGroup:InstanceGroup": Kind(
        "compute.instanceGroups.insert", _ZONE, finish=_members
    ),
    "gcp:compute/instanceGroupManager:InstanceGroupManager": Kind(
        "compute.instanceGroupManagers.insert", _ZONE,
        {"allInstancesConfig.labels": "properties.labels"},
    ),
    "gcp:compute/instanceTemplate:InstanceTemplate": Kind(
        # The region is where the provider looks for subnets that are given by name.
        "compute.instanceTemplates.insert", {**_PROJECT, "region": ""},
        {
            "disks.diskEncryptionKey.kmsKeySelfLink": "kmsKeyName",
            "disks.diskSizeGb": "initializeParams.diskSizeGb",
            "disks.diskType": "initializeParams.diskType",
            "disks.sourceImage": "initializeParams.sourceImage",
            "reservationAffinity.type": "consumeReservationType",
            "serviceAccount": "serviceAccounts[]",
            "tags": "tags.items",
        },
        finish=_template,
    ),
    "gcp:compute/network:Network": Kind(
        "compute.networks.insert", _PROJECT, {"routingMode": "routingConfig.routingMode"}
    ),
    "gcp:compute/regionBackendService:RegionBackendService": Kind(
        "compute.regionBackendServices.insert", _REGION, {"healthChecks": "healthChecks[]"}
    ),
    "gcp:compute/regionHealthCheck:RegionHealthCheck": Kind(
        "compute.regionHealthChecks.insert", _REGION
    ),
    "gcp:compute/regionTargetTcpProxy:RegionTargetTcpProxy": Kind(
        "compute.regionTargetTcpProxies.insert", _REGION, {"backendService": "service"}
    ),
    "gcp:compute/resizeRequest:ResizeRequest": Kind(
        "compute.instanceGroupManagerResizeRequests.insert",
        {**_ZONE, "instanceGroupManager": "instanceGroupManager"},
    ),
    "gcp:compute/resourcePolicy:ResourcePolicy": Kind("compute.resourcePolicies.insert", _REGION),
    "gcp:compute/router:Router": Kind("compute.routers.insert", _REGION),
    "gcp:compute/routerNat:RouterNat": Kind(
        "compute.routers.patch", {**_REGION, "router": "router"},
        {"subnetworks.sourceIpRangesToNats": "sourceIpRangesToNat"}, finish=_nat,
    ),
    "gcp:compute/subnetwork:Subnetwork": Kind("compute.subnetworks.insert", _REGION),
    "gcp:container/cluster:Cluster": Kind(
        "container.projects.locations.clusters.create",
        {
            "project": "", "location": "",
            # What the provider itself does: it deletes the default pool, and refuses to delete.
            "deletionProtection": "", "removeDefaultNodePool": "",
            # It says which members of the API are sent: `useIpAliases` of VPC_NATIVE.
            "networkingMode": "",
        },
        {
            "datapathProvider": "networkConfig.datapathProvider",
            "enableMultiNetworking": "networkConfig.enableMultiNetworking",
            "enableShieldedNodes": "shieldedNodes.enabled",
            # Of its expandMaintenancePolicy: RecurringTimeWindow has a TimeWindow.
            "maintenancePolicy.recurringWindow": "window.recurringWindow",
            "maintenancePolicy.recurringWindow.startTime": "window.startTime",
            "maintenancePolicy.recurringWindow.endTime": "window.endTime",
            "minMasterVersion": "initialClusterVersion",
            "nodeLocations": "locations",
        },
        fixed={"parent": "projects/{project}/locations/{location}"}, finish=_under("cluster"),
    ),
    "gcp:container/nodePool:NodePool": Kind(
        "container.projects.locations.clusters.nodePools.create",
        {"project": "", "location": "", "cluster": ""},
        {
            "nodeConfig": "config",
            "nodeConfig.guestAccelerators": "accelerators",
            "nodeConfig.guestAccelerators.count": "acceleratorCount",
            "nodeConfig.guestAccelerators.type": "acceleratorType",
            "nodeCount": "initialNodeCount",
            "nodeLocations": "locations",
        },
        fixed={"parent": "projects/{project}/locations/{location}/clusters/{cluster}"},
        finish=_under("nodePool"),
    ),
    "gcp:dns/managedZone:ManagedZone": Kind("dns.managedZones.create", _PROJECT),
    "gcp:dns/recordSet:RecordSet": Kind(
        "dns.changes.create", {**_PROJECT, "managedZone": "managedZone"}, finish=_record
    ),
    "gcp:filestore/instance:Instance": Kind(
        "file.projects.locations.instances.create",
        {"project": "", "location": "", "name": "instanceId"},
        {"fileShares": "fileShares[]"},
        fixed={"parent": "projects/{project}/locations/{location}"}, named=False,
    ),
    "gcp:projects/iAMCustomRole:IAMCustomRole": Kind(
        "iam.projects.roles.create", {"project": ""}, {"permissions": "includedPermissions"},
        fixed={"parent": "projects/{project}"}, finish=_under("role", "roleId"), named=False,
    ),
    "gcp:projects/iAMMember:IAMMember": Kind(
        "cloudresourcemanager.projects.setIamPolicy", {"project": "resource"},
        finish=_grant("policy"), named=False,
    ),
    "gcp:serviceaccount/account:Account": Kind(
        # The provider goes on where the answer is that it exists.
        "iam.projects.serviceAccounts.create", {"project": "", "createIgnoreAlreadyExists": ""},
        fixed={"name": "projects/{project}"}, finish=_under("serviceAccount", "accountId"),
        named=False,
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": Kind(
        "iam.projects.serviceAccounts.setIamPolicy", {"serviceAccountId": "resource"},
        finish=_grant("policy"), named=False,
    ),
    "gcp:servicenetworking/connection:Connection": Kind(
        "servicenetworking.services.connections.create", {"service": ""},
        fixed={"parent": "services/{service}"}, named=False,
    ),
    "gcp:storage/bucket:Bucket": Kind(
        "storage.buckets.insert",
        {**_PROJECT, "forceDestroy": ""},  # the provider empties it before it deletes it, or not
        {
            "publicAccessPrevention": "iamConfiguration.publicAccessPrevention",
            "uniformBucketLevelAccess": "iamConfiguration.uniformBucketLevelAccess.enabled",
        },
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": Kind(
        "storage.buckets.setIamPolicy", {"bucket": "bucket"}, finish=_grant(""), named=False
    ),
}  # fmt: skip
UNDESCRIBED = frozenset({"gcp:lustre/instance:Instance"})
"""Types whose service has no document in the package: nothing here can judge them."""
