"""A cluster file of AWS ParallelCluster 3: queues become partitions, compute resources pools."""

from __future__ import annotations

from typing import Any

from .draft import Adopted, Draft, NothingToAdopt, Source, words

SITE = "aws"
_SYSTEMS = {
    "ubuntu2204": "ubuntu-22.04", "ubuntu2404": "ubuntu-24.04",
    "rhel9": "el-9", "rocky9": "el-9",
}  # fmt: skip
_MOST = 10
"""MaxCount where the file has none (ParallelCluster 3's user guide, ComputeResources)."""
_DEPLOYMENTS = {"SCRATCH_2": "scratch-2", "PERSISTENT_2": "persistent-2"}


def adopt_parallelcluster(
    data: Any, *, name: str, origin: str, date: str, zone_id: str = ""
) -> Adopted:
    """Draft a spec of a cluster file.

    Args:
        data: the file's.
        name: of the cluster.
        origin: where it comes from, in words.
        date: when it was read.
        zone_id: zone of its subnets, which the file doesn't say.

    Raises:
        NothingToAdopt: it is of version 2 or another scheduler, or names no region or queue.
    """
    source = Source(data)
    region, scheduler = source.text("Region"), source.text("Scheduling", "Scheduler")
    if not region:
        raise NothingToAdopt("no Region stands in it: is it a file of ParallelCluster 3?")
    if scheduler != "slurm":
        raise NothingToAdopt(f"its scheduler is {scheduler or 'not said'}: only slurm is carried")
    draft = Draft(name, origin=origin, date=date)
    site: dict[str, Any] = {"provider": "aws", "region": region}
    draft.sites[SITE] = site
    draft.tunnel(SITE, "instance-connect")
    if zone_id:
        site["zone_id"] = zone_id
    else:
        draft.leave("the zone", "the file names subnets alone: write their zone_id (--zone-id)")
    _image(source, site, draft)
    _head(source, draft)
    _queues(source, draft)
    _storage(source, region, draft)
    _tags(source, draft)
    idle = source.number("Scheduling", "SlurmSettings", "ScaledownIdletime")
    if idle is not None and idle > 0:
        draft.scheduler["suspend_after"] = f"{idle}m"
    for path, value in source.rest():
        shown = "..." if isinstance(value, list) or _is_private(path[-1]) else value
        draft.leave(f"{words(path)}: {shown}", _why(words(path)))
    return draft.finished()


def _is_private(key: object) -> bool:
    return any(word in str(key) for word in ("Secret", "Password", "Args", "Script"))


def _why(path: str) -> str:
    for word, why in (
        ("Subnet", "network: {vpc, subnets} of the site, where yours is to be used"),
        ("SecurityGroup", "network: {security_groups} of the site"),
        ("CustomActions", "your script does not run on gcluster's nodes"),
        ("Iam", "roles of the site; gcluster makes identities with least rights"),
        ("Database", "accounting: {database, password} of the scheduler"),
        ("Ssh.KeyName", "ssh: {key} of the site; a key is made for the cluster otherwise"),
        ("DirectoryService", "users: {source: sssd, ...}"),
        ("Monitoring", "monitoring of the spec"),
    ):
        if word in path:
            return why
    return "the spec has no word for it"


def _image(source: Source, site: dict[str, Any], draft: Draft) -> None:
    system = source.text("Image", "Os")
    if system in _SYSTEMS:
        draft.more["software"] = {"distribution": _SYSTEMS[system]}
    elif system:
        draft.leave(f"Image.Os: {system}", "gcluster's roles know Debian, Ubuntu and EL 9")
    image = source.text("Image", "CustomAmi")
    if image:
        site["image"] = image
        draft.leave(
            "Image.CustomAmi", "it is carried, and has ParallelCluster's own software in it"
        )


def _head(source: Source, draft: Draft) -> None:
    machine = source.text("HeadNode", "InstanceType")
    if not machine:
        raise NothingToAdopt("it names no HeadNode")
    head: dict[str, Any] = {
        "site": SITE, "role": "controller", "machine": draft.machine(machine, ["aws"]),
    }  # fmt: skip
    _disk(source.part("HeadNode"), head)
    draft.pools["head"] = head
    for pool in source.each("LoginNodes", "Pools"):
        kind = pool.text("InstanceType")
        name = draft.fit(pool.text("Name") or "login", "pool", draft.pools)
        draft.pools[name] = {
            "site": SITE, "role": "login", "machine": draft.machine(kind, ["aws"]),
            "count": pool.number("Count") or 1,
        }  # fmt: skip


def _disk(node: Source, pool: dict[str, Any]) -> None:
    size = node.number("LocalStorage", "RootVolume", "Size")
    if size:
        pool["disk"] = f"{size} GiB"


def _queues(source: Source, draft: Draft) -> None:
    partitions: dict[str, Any] = {}
    for queue in source.each("Scheduling", "SlurmQueues"):
        name = queue.text("Name")
        resources = list(queue.each("ComputeResources"))
        pools = [
            pool for each in resources if (pool := _pool(each, queue, name, len(resources), draft))
        ]
        if pools:
            entry: dict[str, Any] = {"pools": pools}
            if not partitions:
                entry["default"] = True  # ParallelCluster: the first queue is the default
            partitions[draft.fit(name, "partition", partitions)] = entry
    if not partitions:
        raise NothingToAdopt("no queue of it has a compute resource with an instance type")
    draft.scheduler["partitions"] = partitions


def _pool(resource: Source, queue: Source, name: str, many: int, draft: Draft) -> str:
    kinds = [each.text("InstanceType") for each in resource.each("Instances")]
    kinds = [kind for kind in (*kinds, resource.text("InstanceType")) if kind]
    own = resource.text("Name")
    if not kinds:
        draft.leave(f"queue {name}, {own}", "its instance type comes from a reservation: write it")
        return ""
    for other in kinds[1:]:
        draft.leave(
            f"queue {name}, {own}: {other}", "a pool has one machine type: make a second pool"
        )
    pool = draft.fit(name if many == 1 else f"{name}-{own}", "pool", draft.pools)
    least = resource.number("MinCount") or 0
    most = resource.number("MaxCount")
    most = max(least, _MOST) if most is None else most
    entry: dict[str, Any] = {
        "site": SITE, "machine": draft.machine(kinds[0], ["aws"]),
        "count": most if least == most else {"min": least, "max": most},
    }  # fmt: skip
    market = _market(resource, queue, f"queue {name}, {own}", draft)
    if market:
        entry["market"] = market
    _placement(resource, queue, entry)
    in_block = any("capacity_block" in each for each in market)
    if in_block and entry.pop("placement", "none") != "none":
        what = "machines of a capacity block stand close together already"
        draft.leave(f"queue {name}, {own}: PlacementGroup", what)
    _disk(queue.part("ComputeSettings"), entry)
    if resource.take("Efa", "Enabled") is False:
        draft.leave(f"queue {name}, {own}: Efa off", "where a machine has EFA, the pool uses it")
    draft.pools[pool] = entry
    return pool


def _market(resource: Source, queue: Source, where: str, draft: Draft) -> list[Any]:
    kind = queue.text("CapacityType") or "ONDEMAND"
    reserved = ("CapacityReservationTarget", "CapacityReservationId")
    reservation = resource.text(*reserved) or queue.text(*reserved)
    price = resource.take("SpotPrice")
    if kind == "SPOT":
        return [{"spot_max_usd_per_hour": float(price)} if price else "spot"]
    if kind == "CAPACITY_BLOCK":
        if reservation:
            return [{"capacity_block": reservation}]
        draft.leave(
            f"{where}: CAPACITY_BLOCK", "which one is not said: market: [{capacity_block: ID}]"
        )
        return []
    return [{"reservation": reservation}, "on-demand"] if reservation else []


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


def _storage(source: Source, region: str, draft: Draft) -> None:
    for each in source.each("SharedStorage"):
        kind, mount = each.text("StorageType"), each.text("MountDir")
        name = draft.fit(each.text("Name") or mount.strip("/"), "storage", draft.storage)
        where = f"SharedStorage {name} ({kind})"
        path = mount if mount.startswith("/") else f"/{mount}"
        if kind == "Ebs":
            draft.storage[name] = {"type": "nfs", "mount": path, "server": "head"}
            draft.leave(where, "head serves a folder of its disk; the volume's data is not moved")
        elif kind == "Efs":
            found = each.text("EfsSettings", "FileSystemId")
            if found:
                server = f"{found}.efs.{region}.amazonaws.com"
                draft.storage[name] = {
                    "type": "nfs", "mount": path, "server": server, "site": SITE,
                }  # fmt: skip
                why = f"it is mounted from {path} of the file system, and not from its top"
                draft.leave(where, why)
            else:
                draft.leave(where, "gcluster makes no EFS: make it, and name its server")
        elif kind == "FsxLustre":
            _lustre(each.part("FsxLustreSettings"), name, path, draft)
        else:
            draft.leave(where, "gcluster mounts Lustre, NFS, buckets, GPFS and local disks")


def _lustre(settings: Source, name: str, mount: str, draft: Draft) -> None:
    entry: dict[str, Any] = {"type": "lustre", "mount": mount, "site": SITE}
    existing, size = settings.text("FileSystemId"), settings.number("StorageCapacity")
    if existing:
        entry["existing"] = existing
    elif size:
        entry["capacity"] = f"{size} GiB"
        kind = settings.text("DeploymentType")
        if kind in _DEPLOYMENTS:
            entry["deployment"] = _DEPLOYMENTS[kind]
        elif kind:
            draft.leave(f"storage {name}: {kind}", "gcluster makes PERSISTENT_2 and SCRATCH_2")
        rate = settings.number("PerUnitStorageThroughput")
        if rate:
            entry["throughput"] = f"{rate} MB/s/TiB"
        for key, word in (("ImportPath", "import"), ("ExportPath", "export")):
            path = settings.text(key)
            if path:
                entry[word] = path
    else:
        draft.leave(f"storage {name}", "neither an id nor a size is said")
        return
    draft.storage[name] = entry


def _tags(source: Source, draft: Draft) -> None:
    tags = {each.text("Key"): each.text("Value") for each in source.each("Tags")}
    if tags:
        draft.more["tags"] = tags
