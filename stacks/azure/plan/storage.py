"""The data of a site as plans: Managed Lustre, storage accounts, containers, customers' keys."""

from __future__ import annotations

from ....schemas.spec import AzureFilesStorage, AzureSite, ClusterSpec, LustreStorage, ObjectStorage
from ...provider import ProviderError, provider_error
from ...pulumi.plan import made_services
from .identifiers import existing, parse
from .types import (
    AccountPlan,
    ContainerPlan,
    FileSystemPlan,
    KeyPlan,
    SharePlan,
    SitePlan,
    StoragePlan,
)

_GIB = 2**30
_TIB = 2**40
_SHORTEST_SHARE = 3
"""Characters of a share's name."""
_MB = 1e6
_DISK_SETS = "microsoft.compute/diskencryptionsets"
_KEYS = "microsoft.keyvault/vaults/keys"
_IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities"
FSNAME = "lustrefs"
"""Name of every file system of Managed Lustre (learn.microsoft.com/azure/azure-managed-lustre,
"Connect clients", 2026-11)."""
LOGGING = "gcluster-lustre-logs"
"""Second container of an import: Managed Lustre writes there what it could not import."""


def storage(spec: ClusterSpec, site: str, described: AzureSite) -> StoragePlan:
    """Return what the site's data needs; raises ProviderError (GC990)."""
    objects = _objects(spec, site)
    made = {item.account for item in objects if item.made}
    containers = {(item.account, item.name): item for item in objects}
    systems = []
    for name, item in spec.storage.items():
        if not isinstance(item, LustreStorage) or item.site != site or not item.is_made:
            continue
        system = _file_system(name, item, described, made)
        systems.append(system)
        for part in (system.container, system.logging):
            if part is not None:
                containers.setdefault((part.account, part.name), part)
    key = None if described.kms_key is None else _data_key(described, described.kms_key, "kms_key")
    return StoragePlan(
        accounts=tuple(
            AccountPlan(
                name=account,
                containers=tuple(c.name for c in containers.values() if c.account == account),
                hierarchical=any(item.hierarchical for item in objects if item.account == account),
                key=key,
            )
            for account in sorted(made)
        ),
        containers=tuple(containers.values()),
        file_systems=tuple(systems),
        shares=tuple(
            _share(name, item, described)
            for name, item in made_services(spec, site, AzureFilesStorage)
        ),
    )


def _share(name: str, item: AzureFilesStorage, site: AzureSite) -> SharePlan:
    """Return a share; its name has at least 3 characters (Naming and referencing shares)."""
    if item.account is None:
        what = "the name of the storage account to create is not specified"
        raise _refused(name, what, "add account: NAME, unique in the world")
    written = item.kms_key or site.kms_key
    return SharePlan(
        name=name,
        account=item.account,
        share=name if len(name) >= _SHORTEST_SHARE else f"{name}-share",
        gib=0 if item.capacity is None else int(item.capacity.value // _GIB),
        sku=f"Premium_{item.redundancy.upper()}",
        key=None if written is None else _data_key(site, written, f"storage.{name}.kms_key"),
        tls=item.tls,
    )


def key(site: AzureSite, written: str, *, field: str) -> KeyPlan:
    """Return how resources use a customer's key; raises ProviderError (GC990)."""
    found = parse(written)
    kind = "" if found is None else found.kind.casefold()
    if kind == _DISK_SETS:
        return KeyPlan(disk_set=written)
    if found is not None and kind == _KEYS:
        vault, name = found.names
        return KeyPlan(key=written, url=f"https://{vault}.vault.azure.net/keys/{name}")
    if written.startswith("https://") and site.roles.node is not None:
        identity = existing(site, site.roles.node, _IDENTITY, field="roles.node")
        return KeyPlan(url=written, identity=identity)
    raise provider_error(
        "GC990",
        f"{field}: no access can be granted to {written} by its address alone",
        hint="write the key's id (/subscriptions/.../vaults/V/keys/K), or name in roles.node an "
        "identity that may use it",
    )


def _data_key(site: AzureSite, written: str, field: str) -> KeyPlan | None:
    """Return the key for data; a disk encryption set is for disks only."""
    found = key(site, written, field=field)
    return None if found.disk_set else found


def _objects(spec: ClusterSpec, site: str) -> list[ContainerPlan]:
    return [
        ContainerPlan(
            account=account,
            name=container,
            made=item.create,
            read_only=item.read_only,
            mounted=True,
            hierarchical=item.hierarchical_namespace,
        )
        for item in spec.storage.values()
        if isinstance(item, ObjectStorage)
        and item.bucket.startswith("az://")
        and item.site in (None, site)
        for account, container, _ in [_split(item.bucket)]
    ]


def split_container(url: str) -> tuple[str, str]:
    """Return account and container of az://ACCOUNT/CONTAINER; raises ProviderError (GC990)."""
    account, container, _ = _split(url)
    return account, container


def _split(url: str) -> tuple[str, str, str]:
    """Return account, container and prefix of az://ACCOUNT/CONTAINER/PREFIX."""
    account, _, rest = url.removeprefix("az://").partition("/")
    container, _, prefix = rest.partition("/")
    if not container:
        raise provider_error(
            "GC990", f"{url} names no container", hint="write az://ACCOUNT/CONTAINER"
        )
    return account, container, prefix.strip("/")


def _file_system(name: str, item: LustreStorage, site: AzureSite, made: set[str]) -> FileSystemPlan:
    zone = item.zone or site.zone
    if zone is None:
        what = "Managed Lustre is in exactly one zone, and neither it nor the site specifies one"
        raise _refused(name, what, 'add zone: "1"')
    if item.capacity is None or item.throughput is None:
        what = "Managed Lustre is made with a capacity and a throughput"
        raise _refused(name, what, "add capacity: 16 TiB and throughput: 125 MB/s/TiB")
    container, prefix, exports = _blobs(name, item, site, made)
    written = item.kms_key or site.kms_key
    customers = None if written is None else _data_key(site, written, f"storage.{name}.kms_key")
    if customers is not None and not customers.key:
        what = "Managed Lustre takes a key by its id only, with the vault it is in"
        raise _refused(name, what, "write kms_key: /subscriptions/.../vaults/V/keys/K")
    return FileSystemPlan(
        name=name,
        capacity_tib=item.capacity.value / _TIB,
        sku=f"AMLFS-Durable-Premium-{item.throughput.value / _MB:g}",
        zone=zone,
        container=container,
        logging=container
        and ContainerPlan(account=container.account, name=LOGGING, made=container.made),
        import_prefix=prefix,
        export_prefixes=exports,
        key=customers,
    )


def _blobs(
    name: str, item: LustreStorage, site: AzureSite, made: set[str]
) -> tuple[ContainerPlan | None, str, tuple[str, ...]]:
    """Return the container behind a file system, what is imported, and what is exported."""
    urls = [url for url in (item.import_from, item.export_to) if url is not None]
    if not urls:
        return None, "/", ()
    parts = [_split(url) for url in urls]
    if len({part[:2] for part in parts}) > 1:
        what = "Managed Lustre imports from and exports to one and the same container"
        raise _refused(name, what, "name one container in import and export")
    account, container, _ = parts[0]
    if account not in made and site.resource_group is None:
        what = f"the resource group is not specified of the storage account {account}"
        hint = "add the resource_group of the account to the site, or let the spec create it"
        raise _refused(name, what, hint)
    plan = ContainerPlan(account=account, name=container, made=account in made)
    exports = () if item.export_to is None else (f"/{_split(item.export_to)[2]}",)
    prefix = "" if item.import_from is None else _split(item.import_from)[2]
    return plan, f"/{prefix}", exports


def _refused(name: str, what: str, hint: str) -> ProviderError:
    path = ("storage", name)
    return provider_error("GC990", f'storage "{name}": {what}', hint=hint, path=path)


def data_names(spec: ClusterSpec, plan: SitePlan) -> dict[str, tuple[str, ...]]:
    """Return name of a component or container -> the storage that needs it.

    A file system needs the account and the container that are behind it, if they are made here.
    """
    users: dict[tuple[str, str], set[str]] = {}
    for name, item in spec.storage.items():
        if not isinstance(item, ObjectStorage) or not item.bucket.startswith("az://"):
            continue
        if item.create and item.site in (None, plan.site):
            users.setdefault(split_container(item.bucket), set()).add(name)
    for system in plan.storage.file_systems:
        for part in (system.container, system.logging):
            if part is not None and part.made:
                users.setdefault((part.account, part.name), set()).add(system.name)
    found: dict[str, set[str]] = {}
    for (account, container), mine in users.items():
        found.setdefault(plan.names(f"data-{account}"), set()).update(mine)
        found[plan.names(f"{account}-{container}")] = mine
    named = [f"lustre-{system.name}" for system in plan.storage.file_systems]
    named += [f"nfs-{share.name}" for share in plan.storage.shares]
    named += [f"volume-{volume.storage}" for volume in plan.volumes]
    found |= {plan.names(component): {component.partition("-")[2]} for component in named}
    return {resource: tuple(sorted(mine)) for resource, mine in found.items()}
