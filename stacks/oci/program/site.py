"""A site on OCI as a Pulumi program: the components, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import msgspec
import pulumi
import pulumi_oci as oci

from ....schemas.catalog import Catalog
from ....schemas.spec import ClusterSpec
from ...pulumi.names import FILE_SYSTEMS, NO_KEY
from ...pulumi.plan import VolumePlan
from ...pulumi.program import SiteProgram
from ...pulumi.recording.graph import Values
from ...pulumi.recording.monitor import Answers, Json
from .. import cloud_init
from ..plan.layout import site_plan
from ..plan.types import FileStoragePlan, PoolPlan, SitePlan
from .access import Firewall, FirewallArgs, Identities, IdentitiesArgs
from .budget import Spending, SpendingArgs
from .compute import Clusters, ClustersArgs, NodePool, NodePoolArgs
from .network import Dns, DnsArgs, Network, NetworkArgs
from .storage import (
    Bucket,
    BucketArgs,
    FileStorage,
    FileStorageArgs,
    Lustre,
    LustreArgs,
    Volume,
    VolumeArgs,
)
from .templates import LaunchArgs


def program(
    spec: ClusterSpec,
    site: str,
    catalog: Catalog,
    *,
    authorized_key: str = NO_KEY,
    purchased: Mapping[str, str] | None = None,
) -> Callable[[], None]:
    """Return the program of one site.

    Args:
        spec: a spec that passed its checks.
        site: name of an OCI site of it.
        catalog: has its machine types.
        authorized_key: the cluster's public key, which may log in to the nodes.
        purchased: node -> key of the offer that it is bought by, where that is not the first;
            "": it is not made.
    """
    plan = site_plan(spec, site, catalog)
    return lambda: _Site(plan, authorized_key, purchased or {}).build()


class _Site(SiteProgram[SitePlan]):
    """The components of a site on OCI."""

    def __init__(self, plan: SitePlan, authorized_key: str, purchased: Mapping[str, str]) -> None:
        super().__init__(plan, purchased)
        self._key = authorized_key

    def build(self) -> None:
        plan, names = self.plan, self.plan.names
        region = oci.Provider(names("oci"), region=plan.region)
        self.options = pulumi.ResourceOptions(provider=region)
        self._asks = pulumi.InvokeOutputOptions(provider=region)
        self._domains = {number: self._domain(number) for number in plan.domains}
        here = plan.compartment
        self._network = self.make(
            Network, "network", NetworkArgs(names=names, compartment=here, plan=plan.network)
        )
        vcn = self._network.vcn_id
        self._firewall = self.make(
            Firewall,
            "firewall",
            FirewallArgs(names=names, compartment=here, vcn_id=vcn, plan=plan.network),
        )
        granted = IdentitiesArgs(
            names=names, tenancy=plan.tenancy, compartment=here, plan=plan.identity
        )
        at = self._home if plan.identity.is_needed else self.options
        self._identities = Identities(names("identities"), granted, at)
        self._clusters = self.make(
            Clusters,
            "clusters",
            ClustersArgs(names=names, compartment=here, plans=plan.clusters, domains=self._domains),
        )
        pools = {pool.name: self._make_pool(pool) for pool in plan.pools}
        if plan.dns is not None:
            known = {n: address for pool in pools.values() for n, address in pool.addresses.items()}
            args = DnsArgs(names=plan.names, plan=plan.dns, addresses=known)
            self.make(Dns, "dns", args)
        systems = self._make_storage() if plan.buckets or plan.lustre else {}
        systems |= {system.name: self._make_file_storage(system) for system in plan.file_storage}
        systems |= {volume.storage: self._make_volume(volume, pools) for volume in plan.volumes}
        pulumi.export(FILE_SYSTEMS, systems)
        if plan.budget is not None:
            spending = SpendingArgs(
                names=names, tenancy=plan.tenancy, compartment=here, plan=plan.budget
            )
            Spending(names("spending"), spending, self._home)
        pulumi.export("vcn", self._network.vcn_id)
        pulumi.export("pools", {name: _exported(pool) for name, pool in pools.items()})

    @cached_property
    def _home(self) -> pulumi.ResourceOptions:
        """Of what is the tenancy's: groups, policies, tags and budgets.

        OCI makes and changes those in the home region alone (403 NotAllowed: "Please go to your
        home region"; oracle/terraform-provider-oci, issue 1596, November 2026).
        """
        known = oci.identity.get_region_subscriptions_output(
            tenancy_id=self.plan.tenancy, opts=self._asks
        )
        region = known.region_subscriptions.apply(
            lambda all_: next(one.region_name for one in all_ if one.is_home_region)
        )
        home = oci.Provider(self.plan.names("home-region"), region=region)
        return pulumi.ResourceOptions(provider=home)

    def _domain(self, number: int) -> pulumi.Output[str]:
        """Look up the name of an availability domain, which differs by tenancy."""
        return oci.identity.get_availability_domain_output(
            compartment_id=self.plan.tenancy, ad_number=number, opts=self._asks
        ).name

    def _make_pool(self, pool: PoolPlan) -> NodePool:
        plan, network = self.plan, self._network
        launch = LaunchArgs(
            compartment=plan.compartment,
            plan=pool,
            subnet_id=network.public_subnet_id if pool.public else network.compute_subnet_id,
            security_groups=self._firewall.groups(pool.role),
            kms_key=plan.kms_key,
            metadata=cloud_init.metadata(user=pool.image.user, authorized_key=self._key),
            role=self._identities.role(pool.role),
        )
        args = NodePoolArgs(
            names=plan.names,
            launch=launch,
            offers=pool.purchased(self.purchased),
            clusters=self._clusters.ids,
            domains=self._domains,
            # The hash of the spec would replace every configuration with each change.
            tags={**pool.tags, **msgspec.structs.replace(plan.labels, spec_hash="").tags()},
        )
        return self.make(NodePool, f"pool-{pool.name}", args)

    def _make_volume(self, volume: VolumePlan, pools: Mapping[str, NodePool]) -> pulumi.Output[str]:
        """Make a disk of its own for what a host serves; return where the host finds it."""
        plan = self.plan
        pool = plan.pool(volume.pool)
        args = VolumeArgs(
            names=plan.names,
            compartment=plan.compartment,
            plan=volume,
            domain=self._domains[pool.offers[0].domain],
            instance_id=pools[pool.name].instance_ids.get(volume.host),
            bare_metal=pool.machine.startswith("BM."),
            kms_key=plan.kms_key,
        )
        return self.make(Volume, f"volume-{volume.storage}", args).device

    def _make_file_storage(self, system: FileStoragePlan) -> pulumi.Output[str]:
        """Make a file system of File Storage; return what is mounted of it."""
        args = FileStorageArgs(
            names=self.plan.names,
            compartment=self.plan.compartment,
            plan=system,
            domain=self._domains[system.domain],
            vcn_id=self._network.vcn_id,
            subnet_id=self._network.compute_subnet_id,
            node_groups=self._firewall.node_groups,
        )
        return self.make(FileStorage, f"nfs-{system.name}", args).device

    def _make_storage(self) -> dict[str, pulumi.Output[str]]:
        plan = self.plan
        namespace = oci.objectstorage.get_namespace_output(
            compartment_id=plan.tenancy, opts=self._asks
        ).namespace
        buckets = {}
        for bucket in plan.buckets:
            of_bucket = BucketArgs(
                names=plan.names, compartment=plan.compartment, namespace=namespace, plan=bucket
            )
            buckets[bucket.name] = self.make(Bucket, f"bucket-{bucket.name}", of_bucket)
        after = pulumi.ResourceOptions(depends_on=list(buckets.values()))
        systems: dict[str, pulumi.Output[str]] = {}
        for lustre in plan.lustre:
            args = LustreArgs(
                names=plan.names,
                compartment=plan.compartment,
                namespace=namespace,
                plan=lustre,
                domain=self._domains[lustre.domain],
                vcn_id=self._network.vcn_id,
                subnet_id=self._network.compute_subnet_id,
                node_groups=self._firewall.node_groups,
                opens_nodes=not plan.network.security_groups,
                home=self._home,
            )
            opts = pulumi.ResourceOptions.merge(self.options, after)
            made = Lustre(plan.names(f"lustre-{lustre.name}"), args, opts)
            systems[lustre.name] = made.device
        pulumi.export("buckets", {name: bucket.name for name, bucket in buckets.items()})
        return systems


def _exported(pool: NodePool) -> dict[str, object]:
    return {
        "templates": pool.templates,
        "groups": pool.groups,
        "instances": pool.instance_ids,
        "addresses": pool.addresses,
    }


def _domain(arguments: Values) -> dict[str, Json]:
    number = arguments.get("adNumber")
    number = int(number) if isinstance(number, int | float) else 0
    return {"adNumber": number, "name": f"${{availability domain {number}}}"}


_ANSWERS: Answers = {
    "oci:Identity/getAvailabilityDomain:getAvailabilityDomain": _domain,
    "oci:Core/getServices:getServices": {
        "services": [
            {
                "id": "${all services of the region}",
                "cidrBlock": "${label of all services}",
                "name": "All Services In Oracle Services Network",
                "description": "",
            }
        ]
    },
    "oci:Identity/getRegionSubscriptions:getRegionSubscriptions": {
        "regionSubscriptions": [
            {
                "isHomeRegion": True,
                "regionKey": "",
                "regionName": "${home region of the tenancy}",
                "state": "READY",
            }
        ]
    },
    "oci:ObjectStorage/getNamespace:getNamespace": {"namespace": "${namespace of the tenancy}"},
}


def answers(region: str) -> Answers:
    """Return the placeholders for OCI's responses while a program is recorded."""
    del region
    return _ANSWERS
