"""Elastic nodes: started by one EC2 Fleet call, all of them or none, and ended by their names.

No stack is involved. What is needed to continue after a kill is on the machines themselves: the
tags of the cluster, the burst's token, and later the name.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence

from ...schemas.diagnostics import Diagnostic
from ..provider import ProviderError, provider_error
from ..pulumi.elastic import no_capacity, open_offers, to_end
from ..pulumi.engine.events import NO_CAPACITY, translate
from ..pulumi.names import HOST, OFFER, POOL, TOKEN
from .api import Answer, Api, AwsError, tagged
from .hosts import Instance, instances
from .plan.types import OfferPlan, PoolPlan, SitePlan

_LONGEST_TOKEN = 64
"""Characters of a client token (EC2 API, "Ensuring idempotency")."""
_SEEN_WITHIN_S = 30
"""DescribeInstances may lag behind CreateFleet ("Eventual consistency", EC2 API)."""
_TERMINATE_BATCH = 100


class _Launched(Answer, frozen=True):
    instance_ids: tuple[str, ...] = ()


class _LaunchError(Answer, frozen=True):
    error_code: str = ""
    error_message: str = ""


class _Fleet(Answer, frozen=True):
    fleet_id: str = ""
    instances: tuple[_Launched, ...] = ()
    errors: tuple[_LaunchError, ...] = ()


class _Template(Answer, frozen=True):
    launch_template_id: str


class _Templates(Answer, frozen=True):
    launch_templates: tuple[_Template, ...] = ()


def grow(
    api: Api, plan: SitePlan, pool: PoolPlan, names: Sequence[str], token: str
) -> tuple[Instance, ...]:
    """Return the machines of these names, started where they are missing.

    The pool's offers are tried in their order, each with one call for all that is missing: a fabric
    domain is bought from one option. A call that brings fewer is undone before the next is tried.

    Raises:
        ProviderError: no offer had all of them; nothing is left of the tries.
    """
    there = _settled(api, plan, pool, names, token)
    missing = [name for name in names if name not in {machine.host for machine in there}]
    if not missing:
        return there
    findings: list[Diagnostic] = []
    for number, offer in enumerate(_open_offers(api, plan, pool)):
        started, findings_here = _launch(
            api, plan, pool, offer, len(missing), token=token, number=number
        )
        findings += findings_here
        if len(started) >= len(missing):
            _name(api, plan, dict(zip(sorted(started), missing, strict=False)))
            return _await_names(api, plan, pool, names)
        if started:
            terminate(api, started)
        if not started and any(finding.code != NO_CAPACITY for finding in findings_here):
            break  # another option won't help against a missing right or a wrong template
    raise ProviderError(*(findings or [no_capacity(pool, missing)]))


def shrink(api: Api, plan: SitePlan, names: Iterable[str]) -> dict[str, str]:
    """End elastic nodes; return name -> instance of those that existed.

    Raises:
        ProviderError: GC917, a name is of a node that the spec lists.
    """
    there = {m.host: m.id for m in instances(api, plan) if m.token and m.host}
    gone = to_end(plan, set(names), there)
    terminate(api, tuple(gone.values()))
    return gone


def terminate(api: Api, ids: Sequence[str]) -> None:
    """End machines; those that are gone already are no error. Raises AwsError."""
    for start in range(0, len(ids), _TERMINATE_BATCH):
        batch = list(ids[start : start + _TERMINATE_BATCH])
        try:
            api.call(Answer, "ec2", "terminate_instances", InstanceIds=batch)
        except AwsError as error:
            if error.code != "InvalidInstanceID.NotFound":
                raise
            for one in batch if len(batch) > 1 else ():
                terminate(api, [one])


def _settled(
    api: Api, plan: SitePlan, pool: PoolPlan, names: Sequence[str], token: str
) -> tuple[Instance, ...]:
    """Return the machines that have these names, after nameless ones of this burst got one.

    A process that was killed between starting and naming left such: they are found by the token.
    """
    there = instances(api, plan, **{POOL: pool.name})
    purchased = {machine.host for machine in there}
    free = [name for name in names if name not in purchased]
    nameless = sorted(m.instance_id for m in there if m.token == token and not m.host)
    named = dict(zip(nameless, free, strict=False))
    if not named:
        return tuple(machine for machine in there if machine.host in set(names))
    _name(api, plan, named)
    terminate(api, [i for i in nameless if i not in named])
    wanted = [name for name in names if name in purchased or name in named.values()]
    return _await_names(api, plan, pool, wanted)


def _open_offers(api: Api, plan: SitePlan, pool: PoolPlan) -> tuple[OfferPlan, ...]:
    """Return the offers to try: none that buys a block."""
    used = {machine.offer for machine in instances(api, plan, **{POOL: pool.name})}
    return tuple(o for o in open_offers(pool, used) if o.option.buy_hours is None)


def _launch(
    api: Api,
    plan: SitePlan,
    pool: PoolPlan,
    offer: OfferPlan,
    count: int,
    *,
    token: str,
    number: int,
) -> tuple[tuple[str, ...], list[Diagnostic]]:
    """Request machines on one offer; return what was started, and AWS' message where less was."""
    try:
        answer = api.call(
            _Fleet,
            "ec2",
            "create_fleet",
            **_request(api, plan, pool, offer, count=count, token=client_token(token, number)),
            TagSpecifications=[
                {"ResourceType": kind, "Tags": _tags(plan, pool, offer, token)}
                for kind in ("fleet", "instance")
            ],
        )
    except AwsError as error:
        return (), list(error.diagnostics)
    started = tuple(i for launched in answer.instances for i in launched.instance_ids)
    reasons = dict.fromkeys(f"{e.error_code}: {e.error_message}" for e in answer.errors)
    label = f"pool {pool.name} ({offer.key})"
    return started, [translate(text, resource=label) for text in reasons]


def _request(
    api: Api, plan: SitePlan, pool: PoolPlan, offer: OfferPlan, *, count: int, token: str
) -> dict[str, object]:
    """Return the parameters of CreateFleet: all machines of one type in one zone, or none."""
    template = {"LaunchTemplateId": _template(api, plan, pool, offer), "Version": "$Latest"}
    together = {
        "SingleInstanceType": True,
        "SingleAvailabilityZone": True,
        "MinTargetCapacity": count,
    }
    request: dict[str, object] = {
        "Type": "instant",
        "ClientToken": token,
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": template}],
    }
    option = offer.option
    if option.market == "spot":
        limit = option.max_usd_per_hour
        total = {} if limit is None else {"MaxTotalPrice": f"{limit * count:g}"}
        request["SpotOptions"] = {"AllocationStrategy": "capacity-optimized", **together, **total}
    elif option.market != "capacity-block":  # a block takes no options, and gives what it has
        request["OnDemandOptions"] = {"AllocationStrategy": "prioritized", **together}
    kind = option.market if option.market in {"spot", "capacity-block"} else "on-demand"
    request["TargetCapacitySpecification"] = {
        "TotalTargetCapacity": count,
        "DefaultTargetCapacityType": kind,
    }
    return request


def client_token(token: str, number: int) -> str:
    """Return the idempotency token of a try: the burst's own for the first offer.

    The next offer is another request, and EC2 refuses one token for two. The same burst gives the
    same tokens again.
    """
    text = token if number == 0 else f"{token}.{number}"
    if len(text) <= _LONGEST_TOKEN:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


def _template(api: Api, plan: SitePlan, pool: PoolPlan, offer: OfferPlan) -> str:
    wanted = tagged({**plan.labels.found_by(), POOL: pool.name, OFFER: offer.key})
    found = api.call(_Templates, "ec2", "describe_launch_templates", Filters=wanted)
    if not found.launch_templates:
        raise provider_error(
            "GC978",
            f'pool "{pool.name}" has no launch template for {offer.key}',
            hint="run `gcluster up`: it makes the templates that elastic nodes start from",
        )
    return found.launch_templates[0].launch_template_id


def _tags(plan: SitePlan, pool: PoolPlan, offer: OfferPlan, token: str) -> list[dict[str, str]]:
    """Return the tags of a burst, in the form of EC2."""
    own = {POOL: pool.name, OFFER: offer.key, TOKEN: token}
    tags = {**pool.tags, **plan.labels.tags(), **own}
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def _name(api: Api, plan: SitePlan, names: dict[str, str]) -> None:
    """Give machines their names."""
    for instance, name in names.items():
        tags = {HOST: name, "Name": f"{plan.labels.cluster}-{name}"}
        api.call(
            Answer,
            "ec2",
            "create_tags",
            Resources=[instance],
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )


def _await_names(
    api: Api, plan: SitePlan, pool: PoolPlan, names: Sequence[str]
) -> tuple[Instance, ...]:
    """Return the machines of these names, as soon as AWS lists all of them."""
    until = time.monotonic() + _SEEN_WITHIN_S
    while True:
        found = instances(api, plan, **{POOL: pool.name})
        there = tuple(machine for machine in found if machine.host in set(names))
        if len(there) >= len(names) or time.monotonic() >= until:
            return there
        time.sleep(1)
