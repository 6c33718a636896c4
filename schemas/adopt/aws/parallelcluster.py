"""A cluster file of AWS ParallelCluster 3: queues become partitions, compute resources pools.

Keys, their defaults and what they do are those of its user guide
(docs.aws.amazon.com/parallelcluster/latest/ug/cluster-configuration-file-v3.html).
"""

from __future__ import annotations

from typing import Any

from ..draft import Adopted, Draft, NothingToAdopt, reasons
from ..slurm.partition import partition_words
from ..slurm.settings import carry_named
from ..source import Kind, Source, filled
from .parallelcluster_actions import custom_actions
from .parallelcluster_storage import shared_storage
from .place import (
    SITE,
    AwsPlace,
    Subnet,
    aws_network,
    aws_site,
    aws_tags,
    bought,
    efa_facts,
    node_policies,
)

_SYSTEMS = {
    "ubuntu2204": "ubuntu-22.04", "ubuntu2404": "ubuntu-24.04",
    "rhel9": "el-9", "rocky9": "el-9",
}  # fmt: skip
_MOST = 10
"""MaxCount where the file has none (user guide, ComputeResources)."""
_KEPT_FREE_MINUTES = 10
"""ScaledownIdletime where the file has none, which is also gcluster's own."""
_REASONS: tuple[tuple[str, str, Kind], ...] = (
    ("AdditionalIamPolicies", "policies of the site are ARNs of managed policies", "lost"),
    ("S3Access", "nodes get least rights; buckets by storage of type object", "lost"),
    ("Iam.", "identities of the site: roles: {node}", "lost"),
    ("Ssh.KeyName", "a key is made for the cluster; yours: ssh: {key} of the site", "replaced"),
    ("Imds", "nodes take tokens of version 2 alone", "replaced"),
    ("Monitoring", "monitoring: {prometheus: true}; nothing goes to CloudWatch", "replaced"),
    ("HealthChecks", "gcluster checks GPUs itself", "replaced"),
    ("QueueUpdateStrategy", "update: {jobs} of a pool: nodes are drained", "replaced"),
    ("Dcv", "x11: true shows windows of jobs", "lost"),
    ("DeletionPolicy", "down keeps the data of storage unless --delete-data names it", "replaced"),
    ("DeleteOnTermination", "a boot disk goes with its machine", "replaced"),
    ("AllocationStrategy", "a pool has one machine type", "replaced"),
    ("Database.UserName", "accounts of the database are called slurm", "replaced"),
    ("PasswordSecretArn", "a password by reference: aws-secret:NAME", "lost"),
    ("DevSettings", "settings of ParallelCluster's developers", "replaced"),
    ("SharedStorageType", "what the head serves lies on a disk of its own", "replaced"),
    ("VolumeType", "disks are gp3", "replaced"),
    ("RootVolume", "disk: of a pool has a size only", "lost"),
    ("EbsSettings", "the head serves a new disk: the volume's data is not moved", "lost"),
    ("NodePriority", "a pool has one weight: make a second pool of it", "lost"),
    ("MungeKeySecretArn", "a MUNGE key is made", "replaced"),
    ("Efa.GdrSupport", "EFA with GPUDirect where the machine has it", "replaced"),
    ("AdditionalPackages", "software of the spec", "lost"),
)


def adopt_parallelcluster(
    data: Any, *, name: str, origin: str, date: str, place: AwsPlace | None = None
) -> Adopted:
    """Draft a spec of a cluster file.

    Args:
        data: the file's.
        name: of the cluster.
        origin: where it comes from, in words.
        date: when it was read.
        place: what the file doesn't say of its location.

    Raises:
        NothingToAdopt: it is of version 2 or another scheduler, or names no head or queue.
    """
    place = place or AwsPlace()
    source = Source(filled(data, place.variables))
    if not source.has("Scheduling") or not source.has("HeadNode"):
        raise NothingToAdopt("no Scheduling and HeadNode: is it a file of ParallelCluster 3?")
    scheduler = source.text("Scheduling", "Scheduler")
    if scheduler != "slurm":
        raise NothingToAdopt(
            f"its scheduler is {scheduler or 'not specified'}: only slurm is carried"
        )
    draft = Draft(name, origin=origin, date=date)
    site = aws_site(draft, place, source.text("Region"))
    _image(source, site, draft)
    _head(source, site, draft)
    _queues(source, draft)
    _networks(source, site, place)
    shared_storage(source, draft)
    _scheduler(source, draft)
    _directory(source, draft)
    aws_tags(source, draft)
    draft.settle(source, reasons(_REASONS))
    return draft.finished()


def _networks(source: Source, site: dict[str, Any], place: AwsPlace) -> None:
    head = source.part("HeadNode", "Networking")
    logins = [pool.part("Networking") for pool in source.each("LoginNodes", "Pools")]
    queues = [queue.part("Networking") for queue in source.each("Scheduling", "SlurmQueues")]
    subnets = [
        *(Subnet(queue, ("SubnetIds",)) for queue in queues),
        Subnet(head, ("SubnetId",), public=True),
        *(Subnet(login, ("SubnetIds",), public=True) for login in logins),
    ]
    groups = [
        Subnet(part, (key,))
        for part in (head, *logins, *queues)
        for key in ("SecurityGroups", "AdditionalSecurityGroups")
    ]
    aws_network(site, place, subnets, groups)


def _image(source: Source, site: dict[str, Any], draft: Draft) -> None:
    system = source.text("Image", "Os")
    if system in _SYSTEMS:
        draft.more["software"] = {"distribution": _SYSTEMS[system]}
    elif system:
        source.leave("gcluster's roles know Debian, Ubuntu and EL 9", "Image", "Os")
    image = source.text("Image", "CustomAmi")
    if image:
        site["image"] = image
        why = "it is carried, and has ParallelCluster's own software in it"
        draft.leave("Image.CustomAmi", why, "guess")


def _head(source: Source, site: dict[str, Any], draft: Draft) -> None:
    part = source.part("HeadNode")
    head: dict[str, Any] = {"site": SITE, "role": "controller"}
    machine = part.text("InstanceType")
    if machine:
        head["machine"] = draft.machine(machine, ["aws"])
    _disk(part, head)
    draft.pools["head"] = head
    custom_actions(part, ["head"], draft)
    node_policies(part, "Policy", "Iam", "AdditionalIamPolicies", draft=draft)
    for pool in source.each("LoginNodes", "Pools"):
        kind = pool.text("InstanceType")
        name = draft.fit(pool.text("Name") or "login", "pool", draft.pools)
        entry: dict[str, Any] = {"site": SITE, "role": "login"}
        if kind:
            entry["machine"] = draft.machine(kind, ["aws"])
        entry["count"] = pool.number("Count") or 1
        draft.pools[name] = entry
        custom_actions(pool, [name], draft)
        node_policies(pool, "Policy", "Iam", "AdditionalIamPolicies", draft=draft)
    allowed = part.texts("Ssh", "AllowedIps")
    public = part.take("Networking", "ElasticIp")
    if public and allowed:
        head["public_address"] = True
        site["network"] = {"admin_cidrs": allowed}
        if public is not True:
            part.leave("the address is a new one", "Networking", "ElasticIp")
        return
    why = "a public head needs networks that may log in: public_address and admin_cidrs"
    part.leave(why, "Networking", "ElasticIp")
    part.leave(
        "one logs in through a tunnel: admin_cidrs of the site's network", "Ssh", "AllowedIps"
    )
    draft.tunnel(SITE, "instance-connect")


def _disk(node: Source, pool: dict[str, Any]) -> None:
    volume = node.part("LocalStorage", "RootVolume")
    size = volume.number("Size")
    if size:
        pool["disk"] = f"{size} GiB"
    volume.agrees("Encrypted", value=True)
    volume.agrees("VolumeType", value="gp3")
    volume.agrees("DeleteOnTermination", value=True)


def _queues(source: Source, draft: Draft) -> None:
    partitions: dict[str, Any] = {}
    for queue in source.each("Scheduling", "SlurmQueues"):
        name = queue.text("Name")
        resources = list(queue.each("ComputeResources"))
        pools = [_pool(each, queue, name, len(resources), draft) for each in resources]
        if not pools:
            continue
        entry: dict[str, Any] = {"pools": pools}
        if not partitions:
            entry["default"] = True  # ParallelCluster: the first queue is the default
        if queue.take("JobExclusiveAllocation") is True:
            entry["exclusive"] = True
        custom = queue.part("CustomSlurmSettings")
        said, left = partition_words({key: custom.text(key) for key in custom.names()})
        for key, why in left.items():
            custom.leave(why, key)
        partitions[draft.fit(name, "partition", partitions)] = entry | said
        _scratch(queue, pools, draft)
        custom_actions(queue, pools, draft)
        node_policies(queue, "Policy", "Iam", "AdditionalIamPolicies", draft=draft)
    if not partitions:
        raise NothingToAdopt("no queue of it has a compute resource")
    draft.scheduler["partitions"] = partitions


def _scratch(queue: Source, pools: list[str], draft: Draft) -> None:
    mount = queue.text("ComputeSettings", "LocalStorage", "EphemeralVolume", "MountDir")
    if not mount:
        return
    for storage in draft.storage.values():
        if storage["type"] == "local-nvme" and storage["mount"] == mount:
            storage["pools"] += pools
            return
    draft.storage[draft.fit(mount.strip("/") or "scratch", "storage", draft.storage)] = {
        "type": "local-nvme", "mount": mount, "format": True, "pools": list(pools),
    }  # fmt: skip


def _pool(resource: Source, queue: Source, name: str, many: int, draft: Draft) -> str:
    own = resource.text("Name")
    where = f"queue {name}, {own}"
    pool = draft.fit(name if many == 1 else f"{name}-{own}", "pool", draft.pools)
    entry: dict[str, Any] = {"site": SITE}
    listed = list(resource.each("Instances"))
    kinds = [(each, each.text("InstanceType")) for each in listed]
    machine = resource.text("InstanceType") or (kinds[0][1] if kinds else "")
    for each, kind in kinds:
        if kind != machine:
            each.leave("a pool has one machine type: make a second pool of it", "InstanceType")
    has_efa = resource.take("Efa", "Enabled") is True
    if machine:
        facts = efa_facts(machine, draft) if has_efa and not draft.knows(machine) else {}
        entry["machine"] = draft.machine(machine, ["aws"], **facts)
    else:
        draft.leave(where, "its machine type is not specified: machine of the pool", "unfinished")
    if resource.take("Efa", "Enabled") is False:
        why = "where a machine has EFA, the pool uses it"
        resource.leave(why, "Efa", "Enabled", kind="replaced")
    least, most = resource.number("MinCount"), resource.number("MaxCount")
    least, most = least or 0, max(least or 0, _MOST) if most is None else most
    entry["count"] = most if least == most else {"min": least, "max": most}
    market = _market(resource, queue, where, draft)
    if market:
        entry["market"] = market
    _placement(resource, queue, entry)
    if any("capacity_block" in each for each in market) and entry.pop("placement", "") == "cluster":
        what = "machines of a capacity block are close together already"
        draft.leave(f"{where}: PlacementGroup", what, "replaced")
    _disk(queue.part("ComputeSettings"), entry)
    # What ParallelCluster's nodes have, and jobs name by --constraint (its cookbook's
    # slurm_parallelcluster_utils.conf, feature_property).
    entry["features"] = [each for each in (machine, own, "efa" if has_efa else "") if each]
    _node_words(resource, queue, entry)
    draft.pools[pool] = entry
    return pool


def _node_words(resource: Source, queue: Source, entry: dict[str, Any]) -> None:
    """Write tags, Slurm's words of nodes, and threads."""
    tags = {
        each.text("Key"): each.text("Value")
        for part in (queue, resource)
        for each in part.each("Tags")
    }
    if tags:
        entry["tags"] = tags
    custom = resource.part("CustomSlurmSettings")
    static = isinstance(entry["count"], int)
    priority = resource.number("StaticNodePriority" if static else "DynamicNodePriority")
    weight = custom.number("Weight") or priority
    if weight:
        entry["weight"] = weight
    features = [each for key in ("Feature", "Features") for each in custom.text(key).split(",")]
    entry["features"] += [each for each in features if each and each not in entry["features"]]
    if resource.take("DisableSimultaneousMultithreading") is True:
        entry["boot"] = {"smt": False}


def _market(resource: Source, queue: Source, where: str, draft: Draft) -> list[Any]:
    kind = queue.text("CapacityType") or "ONDEMAND"
    target = next(
        (
            part.part("CapacityReservationTarget")
            for part in (resource, queue)
            if part.has("CapacityReservationTarget")
        ),
        Source({}),
    )
    for part in (resource, queue):  # the resource's own overrides the queue's
        part.take("CapacityReservationTarget")
    reservation = target.text("CapacityReservationId") or target.text(
        "CapacityReservationResourceGroupArn"
    )
    price = resource.take("SpotPrice")
    if kind not in {"ONDEMAND", "SPOT", "CAPACITY_BLOCK"}:
        queue.leave("on-demand machines are written; market of the pool", "CapacityType")
    if kind == "SPOT":
        return [{"spot_max_usd_per_hour": float(price)} if price else "spot"]
    if kind == "CAPACITY_BLOCK" and not reservation:
        why = "its id is not specified: market: [{capacity_block: ID}]"
        draft.leave(f"{where}: CAPACITY_BLOCK", why, "unfinished")
    return bought(reservation, block=kind == "CAPACITY_BLOCK")


def _placement(resource: Source, queue: Source, entry: dict[str, Any]) -> None:
    for group in (
        resource.part("Networking", "PlacementGroup"), queue.part("Networking", "PlacementGroup"),
    ):  # fmt: skip
        named = group.text("Id") or group.text("Name")
        enabled = group.take("Enabled")
        if named:
            entry["placement"] = named
        elif enabled is not None:
            entry["placement"] = "cluster" if enabled else "none"
        else:
            continue
        return


def _scheduler(source: Source, draft: Draft) -> None:
    settings = source.part("Scheduling", "SlurmSettings")
    idle = settings.number("ScaledownIdletime")
    if idle is not None and idle > 0 and idle != _KEPT_FREE_MINUTES:
        draft.scheduler["suspend_after"] = f"{idle}m"
    settings.agrees("EnableMemoryBasedScheduling", value=True)
    for each in settings.each("CustomSlurmSettings"):
        for key in each.names():
            why = carry_named(key, each.text(key), draft)
            if why:
                each.leave(why, key, kind="replaced" if "itself" in why else "lost")
    database = settings.text("Database", "Uri")
    password = settings.text("Database", "PasswordSecretArn")
    if database:
        draft.scheduler["accounting"] = {"database": database}
        if password:
            draft.scheduler["accounting"]["password"] = f"aws-secret:{password}"
        settings.agrees("Database", "UserName", value="slurm")


def _directory(source: Source, draft: Draft) -> None:
    """Write the directory that people come from."""
    part = source.part("DirectoryService")
    address = part.text("DomainAddr")
    if not address:
        return
    ldap = address if "://" in address else f"ldaps://{address}"
    users: dict[str, Any] = {"source": "sssd", "ldap": ldap}
    base = part.text("DomainName")
    if base:
        users["base"] = base if "=" in base else ",".join(f"dc={word}" for word in base.split("."))
    bind, secret = part.text("DomainReadOnlyUser"), part.text("PasswordSecretArn")
    if bind and secret:
        users |= {"bind_dn": bind, "bind_password": f"aws-secret:{secret}"}
    why = "the schema of the directory is not specified: schema: ad, rfc2307 or rfc2307bis"
    draft.leave("DirectoryService: schema", why, "guess")
    draft.more["users"] = users
