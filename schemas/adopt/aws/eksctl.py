"""A file of eksctl (ClusterConfig): node groups become pools under EKS.

Keys are those of its schema (github.com/eksctl-io/eksctl, commit 99984ad,
pkg/apis/eksctl.io/v1alpha5/assets/schema.json).
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from ..draft import Adopted, Draft, NothingToAdopt, reasons, taints
from ..source import Kind, Source, filled
from .place import SITE, AwsPlace, aws_site, bought, efa_facts, node_policies

_REASONS: tuple[tuple[str, str, Kind], ...] = (
    ("overrideBootstrapCommand", "storage of type local-nvme, where nodes are ours", "lost"),
    ("preBootstrapCommands", "your scripts don't run on gcluster's nodes", "lost"),
    ("withOIDC", "identities of pods are made for the add-ons that need one", "replaced"),
    ("withAddonPolicies", "nodes get the rights that gcluster's add-ons need", "replaced"),
    ("attachPolicyARNs", "policies of the site are ARNs of managed policies", "lost"),
    ("iam", "identities of the site: roles: {node}", "lost"),
    ("nodeRepairConfig", "gcluster repair replaces nodes that are broken", "replaced"),
    ("instancePrefix", "machines are called as the cluster and pool", "replaced"),
    ("addons", "addons of the catalog; CloudWatch is none of them", "lost"),
    ("cloudWatch", "nothing goes to CloudWatch: monitoring", "lost"),
    ("ssh", "a key is made for the cluster; yours: ssh: {key} of the site", "replaced"),
    ("availabilityZones", "zones are written by id: zone_id of the site", "replaced"),
    ("amiFamily", "Amazon's image for EKS", "replaced"),
    ("privateNetworking", "compute nodes have no public address", "replaced"),
    ("fargateProfiles", "pods run on the pools' machines", "lost"),
    ("accessConfig", "gcluster kubeconfig --as gives rights by account", "lost"),
    ("autoModeConfig", "pools say which machines there are", "lost"),
)


_OWN_ADDONS = {
    "eks-node-monitoring-agent": "gcluster checks nodes itself: status and repair",
    "aws-fsx-csi-driver": "storage of type lustre brings it",
    "aws-mountpoint-s3-csi-driver": "storage of type object brings it",
    "vpc-cni": "EKS has it",
    "coredns": "EKS has it",
    "kube-proxy": "EKS has it",
}


def adopt_eksctl(data: Any, *, name: str, origin: str, date: str, place: AwsPlace) -> Adopted:
    """Draft a spec of a file of eksctl.

    Args:
        data: the file's.
        name: of the cluster; "": the file's.
        origin: where it comes from, in words.
        date: when it was read.
        place: what the file doesn't say of its location.

    Raises:
        NothingToAdopt: it is no ClusterConfig, or has no node group.
    """
    source = Source(filled(data, place.variables))
    if source.text("kind") != "ClusterConfig":
        raise NothingToAdopt("its kind is not ClusterConfig: is it a file of eksctl?")
    version = source.text("apiVersion")
    if version != "eksctl.io/v1alpha5":
        raise NothingToAdopt(f"its apiVersion is {version or 'not specified'}: v1alpha5 is read")
    draft = Draft(name or source.text("metadata", "name") or "eks", origin=origin, date=date)
    if name:
        source.take("metadata", "name")
    site = aws_site(draft, place, source.text("metadata", "region"))
    draft.scheduler = {"type": "kubernetes", "control_plane": "eks"}
    version = source.text("metadata", "version")
    if version:
        draft.more["software"] = {"kubernetes": version}
    tags = source.pairs("metadata", "tags")
    if tags:
        draft.more["tags"] = tags
    _network(source.part("vpc"), site)
    for group in chain(source.each("managedNodeGroups"), source.each("nodeGroups")):
        _pool(group, draft)
    for addon in source.each("addons"):
        name = addon.raw("name")
        if name in _OWN_ADDONS:
            addon.leave(_OWN_ADDONS[name], kind="replaced")
        else:
            addon.leave("addons of the catalog; CloudWatch is none of them")
    if not draft.pools:
        raise NothingToAdopt("it has no managedNodeGroups and no nodeGroups")
    draft.leave_image("eks")
    draft.settle(source, reasons(_REASONS))
    return draft.finished()


def _network(vpc: Source, site: dict[str, Any]) -> None:
    exists = vpc.text("id")
    if not exists:
        cidr = vpc.text("cidr")
        if cidr:
            site["network"] = {"cidr": cidr}
        return
    subnets: dict[str, Any] = {}
    private = [
        vpc.text("subnets", "private", key, "id") for key in vpc.part("subnets", "private").names()
    ]
    public = [
        vpc.text("subnets", "public", key, "id") for key in vpc.part("subnets", "public").names()
    ]
    private, public = [each for each in private if each], [each for each in public if each]
    if private or public:
        subnets["compute"] = (private or public)[0]
    if public and private:
        subnets["public"] = public[0]
        for key in vpc.part("subnets", "public").names()[1:]:
            why = "the nodes of a site are in one zone: one public subnet"
            vpc.leave(why, "subnets", "public", key, "id", kind="replaced")
    if len(private) > 1:
        subnets["control_plane"] = private[:2]
        for key in vpc.part("subnets", "private").names()[2:]:
            vpc.leave("EKS needs two subnets", "subnets", "private", key, "id", kind="replaced")
    site["network"] = {"vpc": exists} | ({"subnets": subnets} if subnets else {})


def _pool(group: Source, draft: Draft) -> None:
    name = draft.fit(group.text("name") or "nodes", "pool", draft.pools)
    entry: dict[str, Any] = {"site": SITE}
    kinds = group.texts("instanceTypes")
    machine = group.text("instanceType") or (kinds[0] if kinds else "")
    if len(kinds) > 1:
        group.leave("a pool has one machine type: make a second pool of it", "instanceTypes")
    efa = group.take("efaEnabled")
    if machine:
        facts = efa_facts(machine, draft) if efa is True and not draft.knows(machine) else {}
        entry["machine"] = draft.machine(machine, ["aws"], **facts)
    else:
        why = "its machine type is not specified: machine of the pool"
        draft.leave(f"node group {name}", why, "unfinished")
    if efa is False:
        group.leave("where a machine has EFA, the pool uses it", "efaEnabled", kind="replaced")
    entry |= _size(group, name, draft)
    node_policies(group, "", "iam", "attachPolicyARNs", draft=draft)
    market = _market(group)
    if market:
        entry["market"] = market
    size = group.number("volumeSize")
    if size:
        entry["disk"] = f"{size} GiB"
    group.agrees("volumeType", value="gp3")
    group.agrees("volumeEncrypted", value=True)
    placement = group.text("placement", "groupName")
    if placement:
        entry["placement"] = placement
    group.agrees("privateNetworking", value=True)
    image = group.text("ami")
    if image:
        entry["image"] = image
    draft.pools[name] = entry | _labels(group)


def _labels(group: Source) -> dict[str, Any]:
    """Return what nodes and machines are marked with, and how many pods they take."""
    found: dict[str, Any] = {}
    kubernetes: dict[str, Any] = {}
    labels, pods, tags = group.pairs("labels"), group.number("maxPodsPerNode"), group.pairs("tags")
    if labels:
        kubernetes["labels"] = labels
    if pods:
        kubernetes["max_pods"] = pods
    marks = taints(group.each("taints"))
    if marks:
        kubernetes["taints"] = marks
    if kubernetes:
        found["kubernetes"] = kubernetes
    if tags:
        found["tags"] = tags
    return found


def _size(group: Source, name: str, draft: Draft) -> dict[str, Any]:
    """Return how many nodes the pool has; it grows where the group's role lets an autoscaler work.

    eksctl brings no autoscaler itself: without `autoScaler` nothing but a person sizes the group.
    """
    least, most = group.number("minSize"), group.number("maxSize")
    bounds = {least, most} - {None}
    if least is not None and most is not None and least < most and _grows(group):
        why = f"an elastic pool starts with {least} nodes: min"
        group.leave(why, "desiredCapacity", kind="replaced")
        return {"count": {"min": least, "max": most}}
    wanted = group.number("desiredCapacity")
    for key in ("minSize", "maxSize"):
        if bounds - {wanted}:
            group.leave("nothing in it sizes the group: count, and scale", key, kind="replaced")
    if wanted is not None:
        return {"count": wanted}
    if len(bounds) == 1:
        group.number("minSize")
        group.number("maxSize")
        return {"count": bounds.pop() or 0}
    if group.has("desiredCapacity"):
        return {}
    draft.leave(f"node group {name}: count", "its number of nodes is not specified", "unfinished")
    return {}


def _grows(group: Source) -> bool:
    """Say whether the nodes' role may size their group, which only an autoscaler needs."""
    return group.agrees("iam", "withAddonPolicies", "autoScaler", value=True)


def _market(group: Source) -> list[Any]:
    target = group.part("capacityReservation", "capacityReservationTarget")
    reservation = target.text("capacityReservationID") or target.text(
        "capacityReservationResourceGroupARN"
    )
    kind = group.text("instanceMarketOptions", "marketType")
    if reservation:
        return bought(reservation, block=kind == "capacity-block")
    return ["spot"] if group.take("spot") is True or kind == "spot" else []
