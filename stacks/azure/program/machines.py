"""Puts the machines of a site together: identities, disk keys, named machines, scale sets."""

from __future__ import annotations

import pulumi

from ....schemas.derived.hostlist import host_stem
from ...pulumi.names import HOST, POOL
from ...pulumi.plan import VolumePlan
from ...pulumi.program import SiteProgram
from ..cloud_init import custom_data
from ..plan.identifiers import SET
from ..plan.types import LiveState, OfferPlan, PoolPlan, ScaleSetPlan, SitePlan
from .access import Grant, make_identity
from .compute import MachineArgs, NamedMachine, NamedMachineArgs, ScaleSet, ScaleSetArgs
from .data import Data
from .disks import DiskKey, DiskKeyArgs, Volume, VolumeArgs


class Machines:
    """All machines of the site."""

    def __init__(
        self,
        here: SiteProgram[SitePlan],
        group: pulumi.Output[str],
        data: Data,
        live_state: LiveState,
    ) -> None:
        """Make scale sets first: the burst agent on the controller is let change them."""
        self._here, self._make, self._plan = here, here.make, here.plan
        self._group = group
        self._network = data.network
        self._moment = live_state
        self.named: dict[str, NamedMachine] = {}
        """Host -> login or controller machine."""
        self.sets: dict[str, ScaleSet] = {}
        """Scale set, by its name in the plan."""
        self.disk_set_id = self._disk_set(data)
        """Encrypts disks by a customer's key; None: Azure's own."""
        joined = self._plan.control_plane
        self._pools = [p for p in self._plan.pools if joined is None or p.name not in joined.pools]
        self._node = make_identity(
            here,
            "node",
            group,
            existing=self._plan.access.node_identity,
            grants=self._reads(data),
        )
        for pool in self._pools:
            for part in pool.sets:
                self.sets[part.name] = self._scale_set(pool, part)
        self.volumes = {v.storage: self._volume(v, data) for v in self._plan.volumes}
        """Storage -> its disk."""
        burst = self._burst()
        for pool in self._pools:
            if not pool.sets:
                self._named_machines(pool, burst if pool.role == "controller" else ())
        self.outputs = {pool.name: self._output(pool) for pool in self._pools}
        """Pool -> what `hosts` needs to find its machines."""

    def _disk_set(self, data: Data) -> pulumi.Input[str] | None:
        key = self._plan.key
        if key is None:
            return None
        if key.disk_set:
            return key.disk_set
        made = self._make(
            DiskKey,
            "disk-key",
            DiskKeyArgs(
                names=self._plan.names,
                region=self._plan.region,
                resource_group=self._group,
                key_url=key.url,
                identity_id=data.key_user(key, "disk", self._group),
            ),
        )
        return made.disk_set_id

    def _reads(self, data: Data) -> tuple[Grant, ...]:
        """Return what nodes may do: with the blobs that they mount, and nothing else."""
        return tuple(
            Grant(
                what=f"{item.account}-{item.name}",
                role="blob-reader" if item.read_only else "blob-contributor",
                scope=data.container_ids[f"{item.account}/{item.name}"],
            )
            for item in self._plan.storage.containers
            if item.mounted and f"{item.account}/{item.name}" in data.container_ids
        )

    def _burst(self) -> tuple[pulumi.Output[str], ...]:
        """Return the identity of the burst agent, which may change elastic scale sets only.

        To give a machine its identity, subnet and security group it must be let use those too.
        """
        access = self._plan.access
        if access.burst_identity:
            return (
                make_identity(self._here, "burst", self._group, existing=access.burst_identity),
            )
        if not access.makes_burst:
            return ()
        elastic = [p.name for pool in self._pools if pool.elastic for p in pool.sets]
        scopes: dict[str, pulumi.Input[str]] = {
            **{f"set-{name}": self.sets[name].scale_set_id for name in elastic},
            "subnet": self._network.subnet_ids["compute"],
            "security-group": self._network.closed_group_id,
        }
        grants = [Grant(what=w, role="machine-contributor", scope=s) for w, s in scopes.items()]
        grants.append(Grant(what="node-identity", role="identity-operator", scope=self._node))
        return (make_identity(self._here, "burst", self._group, grants=tuple(grants)),)

    def _scale_set(self, pool: PoolPlan, part: ScaleSetPlan) -> ScaleSet:
        live = self._moment.live.get(part.name)
        grown = live.capacity if live is not None and pool.elastic else 0
        values = {POOL: pool.name, SET: part.name}
        tags = {**pool.tags, **(live.tags if live is not None else {}), **values}
        purchased = pool.purchased(self._moment.purchased)
        made = [purchased[host] for host in pool.part_names(part.name) if host in purchased]
        return self._make(
            ScaleSet,
            f"pool-{part.name}",
            ScaleSetArgs(
                machine=self._machine(pool, next(iter(made), pool.offers[0]), (self._node,), tags),
                name=part.name,
                prefix=host_stem(pool.name),
                capacity=max(len(made), grown),
            ),
        )

    def _volume(self, volume: VolumePlan, data: Data) -> Volume:
        pool = self._plan.pool(volume.pool)
        args = VolumeArgs(
            names=self._plan.names,
            region=self._plan.region,
            resource_group=data.group,
            plan=volume,
            zone=pool.offers[0].zone,
            disk_set_id=self.disk_set_id,
        )
        return self._make(Volume, f"volume-{volume.storage}", args)

    def _named_machines(self, pool: PoolPlan, more: tuple[pulumi.Output[str], ...]) -> None:
        for host, option in pool.purchased(self._moment.purchased).items():
            tags = {**pool.tags, POOL: pool.name, HOST: host}
            self.named[host] = self._make(
                NamedMachine,
                f"machine-{host}",
                NamedMachineArgs(
                    machine=self._machine(pool, option, (self._node, *more), tags),
                    host=host,
                    public_address=pool.public,
                    forwards=pool.gateway and host == pool.nodes[0],
                    disks=tuple(
                        self.volumes[volume.storage].disk_id
                        for volume in self._plan.volumes
                        if volume.host == host
                    ),
                ),
            )

    def _machine(
        self,
        pool: PoolPlan,
        option: OfferPlan,
        identities: tuple[pulumi.Output[str], ...],
        tags: dict[str, str],
    ) -> MachineArgs:
        user, key = self._plan.user, self._moment.public_key
        closed, access = self._network.closed_group_id, self._network.access_group_id
        return MachineArgs(
            names=self._plan.names,
            region=self._plan.region,
            resource_group=self._group,
            plan=pool,
            option=option,
            user=user,
            public_key=key,
            custom_data=custom_data(user, key),
            subnet_id=self._network.subnet_ids[pool.subnet],
            security_group_id=closed if pool.role == "compute" else access,
            identity_ids=identities,
            disk_set_id=self.disk_set_id,
            tags=tags,
        )

    def _output(self, pool: PoolPlan) -> dict[str, object]:
        if pool.sets:
            return {"sets": {part.name: self.sets[part.name].scale_set_name for part in pool.sets}}
        return {
            "machines": {
                host: {
                    "name": self.named[host].machine_name,
                    "private": self.named[host].private_address,
                    "public": self.named[host].public_address,
                }
                for host in pool.nodes
                if host in self.named
            }
        }
