"""A pool's plan and the parts of its site, put together into the arguments of its component."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pulumi

from ..pulumi.labels import POOL, label_key, label_value
from ..pulumi.names import Names
from .compute import MachineArgs, PolicyArgs, PoolArgs
from .marks import RUNG, description
from .pools import PoolPlan, uses_policy
from .rungs import RungPlan
from .templates import NicArgs, TemplateArgs

NO_IMAGE = "image-is-not-known"
"""Stands where no image is known; preflight stops before it is asked for."""


class SiteParts(msgspec.Struct, frozen=True, kw_only=True):
    """What all pools of a site share."""

    names: Names
    project: str
    region: str
    kms_key: str | None
    subnets: dict[str, pulumi.Input[str]]
    """Key -> id."""
    account: pulumi.Input[str]
    """E-mail of the nodes' identity."""
    metadata: dict[str, str]
    labels: dict[str, str]
    balanced: bool
    """A load balancer stands before the controllers."""


def pool_args(pool: PoolPlan, site: SiteParts, *, taken: Mapping[str, str]) -> PoolArgs:
    """Return the arguments of a pool whose machines are bought as `taken` says.

    An elastic pool has a template for every rung; another those of the rungs that it is on.
    """
    on = pool.taken(taken)
    keys = {rung.key for rung in on.values()} or {pool.rungs[0].key}
    rungs = [rung for rung in pool.rungs if rung.key in keys]
    rungs += [rung for rung in pool.rungs if rung.key not in keys and pool.is_elastic]
    placement = pool.placement
    used = any(uses_policy(pool, each) for each in rungs)
    numbers = {host: number for number, host in enumerate(pool.hosts, start=1)}
    return PoolArgs(
        names=site.names,
        name=pool.name,
        project=site.project,
        region=site.region,
        mark=description(site.names.cluster, site.names.site),
        labels=_labels(pool.labels),
        templates=tuple(_template(pool, each, site) for each in rungs),
        policies=PolicyArgs(
            count=pool.policies(),
            collocated=placement.collocated,
            topology=placement.topology,
            domains=placement.spread_over,
        )
        if used
        else None,
        existing_policy=placement.existing,
        machines=tuple(
            MachineArgs(
                host=host,
                rung=rung.key,
                policy=pool.policy_of(numbers[host]) if uses_policy(pool, rung) else None,
            )
            for host, rung in on.items()
        ),
        gateway=pool.hosts[0] if pool.gateway and pool.hosts else None,
        queued=any(rung.market == "flex-start" for rung in on.values()),
    )


def _template(pool: PoolPlan, rung: RungPlan, site: SiteParts) -> TemplateArgs:
    nics = tuple(
        NicArgs(
            subnet_id=site.subnets[nic.subnet],
            nic_type=nic.nic_type,
            public=pool.public_address and number == 0,
        )
        for number, nic in enumerate(rung.interfaces)
    )
    return TemplateArgs(
        name=site.names(f"{pool.name}-{rung.key}"),
        rung=rung.key,
        project=site.project,
        region=site.region,
        zone=rung.zone,
        machine=pool.machine,
        has_gpus=pool.has_gpus,
        nics=nics,
        image=pool.image or NO_IMAGE,
        disk_type=pool.disk_type,
        disk_gib=pool.disk_gib,
        kms_key=site.kms_key,
        provisioning_model=rung.provisioning_model,
        affinity=rung.affinity,
        reservation=rung.reservation,
        run_seconds=rung.run_seconds,
        taken_back=rung.comes_and_goes,
        account=site.account,
        metadata=site.metadata,
        network_tags=_network_tags(pool, site),
        forwards=pool.gateway,
        labels=_labels(pool.labels) | {POOL: label_value(pool.name), RUNG: label_value(rung.key)},
    )


def _network_tags(pool: PoolPlan, site: SiteParts) -> tuple[str, ...]:
    """Return the tags by which firewall rules know a pool's machines."""
    ssh = (site.names("ssh"),) if pool.role != "compute" else ()
    api = (site.names("api"),) if pool.role == "controller" and site.balanced else ()
    return (*ssh, *api, *((site.names("gateway"),) if pool.gateway else ()))


def _labels(tags: dict[str, str]) -> dict[str, str]:
    return {label_key(key): label_value(value) for key, value in tags.items()}
