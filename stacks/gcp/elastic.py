"""Elastic machines: created by one bulkInsert, all of them or none, and deleted by their names.

No stack is involved. What is needed to continue after a kill is on the machines themselves: the
labels of the cluster, the burst's token, the purchase option; their names are the nodes' names.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ...schemas.diagnostics import Diagnostic
from ..provider import ProviderError, provider_error
from ..pulumi.elastic import open_offers, to_end
from ..pulumi.engine.events import NO_CAPACITY
from ..pulumi.names import HOST, POOL, TOKEN, label_value
from .api import NOT_FOUND, Answer, Api, Body, GoogleError, Operation
from .hosts import ALIVE, Instance, host_of, instances
from .plan.facts import facts
from .plan.layout import SitePlan
from .plan.names import OPTION, found_by
from .plan.pools import OfferPlan, PoolPlan, uses_policy

_AT_ONCE = 16
_NAMESPACE = uuid.UUID("0d6c7c1e-6f1b-5d0e-9f0a-6c3b5f1f4a17")
"""Of the request ids that are made from tokens; any would do, as long as it stays."""


class _Properties(Answer, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Template(Answer, frozen=True):
    self_link: str
    creation_timestamp: str = ""
    properties: _Properties = _Properties()


class _Templates(Answer, frozen=True):
    items: tuple[_Template, ...] = ()


class _Policy(Answer, frozen=True):
    name: str
    self_link: str


class _Policies(Answer, frozen=True):
    items: tuple[_Policy, ...] = ()


def grow(
    api: Api, plan: SitePlan, pool: PoolPlan, names: Sequence[str], token: str
) -> tuple[Instance, ...]:
    """Return the machines of these names, created where they are missing.

    The pool's options are tried in their order, each for all that is missing: a fabric domain is
    bought on one option, unless the spec says `mixed`. An option with fewer is undone before the
    next is tried.

    Raises:
        ProviderError: no option had all of them; nothing is left of the tries.
    """
    there = _alive(api, plan, pool)
    missing = [name for name in names if name not in there]
    findings: list[Diagnostic] = []
    templates = _templates(api, plan, pool) if missing else {}
    for option in _open_options(pool, there.values()) if missing else ():
        try:
            _insert(api, plan, pool, option, missing, token=token, templates=templates)
            missing = []
            break
        except GoogleError as error:
            findings += error.diagnostics
            _undo(api, plan, pool, missing, token)
            if error.diagnostics[0].code != NO_CAPACITY:
                break  # another option won't help against a missing right or a wrong template
    if missing:
        raise ProviderError(*(findings or [_none(pool, missing)]))
    now = _alive(api, plan, pool)
    return tuple(now[name] for name in names if name in now)


def shrink(api: Api, plan: SitePlan, names: Iterable[str]) -> dict[str, str]:
    """Delete elastic machines; return name -> id of those that existed.

    Raises:
        ProviderError: GC917, a name is of a machine that the spec lists.
    """
    there = {host_of(plan, m): m for m in instances(api, plan) if m.token}
    gone = to_end(plan, set(names), there)
    delete(api, gone.values())
    return {host: machine.id for host, machine in gone.items()}


def delete(api: Api, machines: Iterable[Instance]) -> None:
    """Delete machines and wait for it; those that are gone already are no error."""

    def one(machine: Instance) -> None:
        path = f"{api.in_zone(machine.zone_name)}/instances/{machine.name}"
        try:
            api.wait(api.call(Operation, path, method="DELETE"), resource=machine.name)
        except GoogleError as error:
            if error.status != NOT_FOUND:
                raise

    with ThreadPoolExecutor(_AT_ONCE) as workers:
        list(workers.map(one, machines))


def request_id(token: str, *parts: str) -> str:
    """Return Google's id of a repeated request: the same for the same burst."""
    return str(uuid.uuid5(_NAMESPACE, "/".join((token, *parts))))


def _alive(api: Api, plan: SitePlan, pool: PoolPlan) -> dict[str, Instance]:
    return {
        host: machine
        for machine in instances(api, plan)
        if machine.pool == label_value(pool.name)
        and machine.status in ALIVE
        and (host := host_of(plan, machine))
    }


def _open_options(pool: PoolPlan, there: Iterable[Instance]) -> tuple[OfferPlan, ...]:
    """Return the options that may be tried; labels hold their keys in their own spelling."""
    spelled = {label_value(option.key): option.key for option in pool.offers}
    used = [label for machine in there if (label := machine.labels.get(OPTION, ""))]
    return open_offers(pool, {spelled.get(label, label) for label in used})


def _insert(
    api: Api,
    plan: SitePlan,
    pool: PoolPlan,
    option: OfferPlan,
    hosts: Sequence[str],
    *,
    token: str,
    templates: Mapping[str, str],
) -> None:
    """Make machines, all or none of each call; raises GoogleError."""
    template = templates.get(label_value(option.key))
    if template is None:
        message = f"pool {pool.name} has no template for {option.key}: run `gcluster up` first"
        raise GoogleError(message)
    policies = _policies(api, plan, pool, option)
    operations = []
    for number, (policy, group) in enumerate(_calls(pool, hosts, policies)):
        operations.append(
            api.call(
                Operation,
                f"{api.in_zone(option.zone)}/instances/bulkInsert",
                method="POST",
                query={"requestId": request_id(token, option.key, str(number), *group)},
                body=_body(
                    plan, pool, option, group, token=token, template=template, policy=policy
                ),
            )
        )
    for operation in operations:
        api.wait(operation, resource=f"pool {pool.name} on {option.key}")


def _calls(
    pool: PoolPlan, hosts: Sequence[str], policies: Sequence[str]
) -> Iterator[tuple[str | None, list[str]]]:
    """Yield (placement policy, machines) of each call: one, but for NVLink domains and limits."""
    every = {host: number for number, host in enumerate(pool.all_nodes(), start=1)}
    groups: dict[int, list[str]] = {}
    for host in hosts:
        groups.setdefault(pool.policy_of(every.get(host, 1)), []).append(host)
    for index, group in sorted(groups.items()):
        policy = policies[index] if index < len(policies) else None
        for start in range(0, len(group), facts().bulk_limit):
            yield policy, group[start : start + facts().bulk_limit]


def _body(
    plan: SitePlan,
    pool: PoolPlan,
    option: OfferPlan,
    hosts: Sequence[str],
    *,
    token: str,
    template: str,
    policy: str | None,
) -> Body:
    """Return the request: the template, with what is this burst's own over it."""
    labels = found_by(plan) | {
        POOL: label_value(pool.name),
        OPTION: label_value(option.key),
        TOKEN: label_value(token),
    }
    placed = policy or pool.placement.existing
    return {
        "count": str(len(hosts)),
        "minCount": str(len(hosts)),
        "sourceInstanceTemplate": template,
        "perInstanceProperties": {plan.names(host): {} for host in hosts},
        "instanceProperties": {
            "labels": labels,
            **({"resourcePolicies": [placed]} if placed else {}),
        },
    }


def _templates(api: Api, plan: SitePlan, pool: PoolPlan) -> dict[str, str]:
    """Return option -> the pool's newest template for it, by their labels."""
    wanted = found_by(plan) | {POOL: label_value(pool.name)}
    path = f"{api.in_project()}/global/instanceTemplates"
    pages = api.pages(_Templates, path)
    found = [template for page in pages for template in page.items]
    mine = [t for t in found if wanted.items() <= t.properties.labels.items()]
    mine.sort(key=lambda template: template.creation_timestamp)
    return {t.properties.labels.get(OPTION, ""): t.self_link for t in mine}


def _policies(api: Api, plan: SitePlan, pool: PoolPlan, option: OfferPlan) -> list[str]:
    """Return the placement policies that the stack made for a pool, in order of their numbers."""
    if not uses_policy(pool, option):
        return []
    pages = api.pages(_Policies, f"{api.in_region(plan.region)}/resourcePolicies")
    found = [policy for page in pages for policy in page.items]
    links = []
    for number in range(1, pool.policies() + 1):
        name = plan.names(f"{pool.name}-placement", number)
        engine_made = re.compile(rf"{re.escape(name)}-[0-9a-f]{{7}}")
        links += [policy.self_link for policy in found if engine_made.fullmatch(policy.name)][:1]
    return links


def _undo(api: Api, plan: SitePlan, pool: PoolPlan, hosts: Sequence[str], token: str) -> None:
    """Delete what a failed try left: Google rolls a call back, not the calls before it."""
    left = [
        machine
        for host, machine in _alive(api, plan, pool).items()
        if host in hosts and machine.token == label_value(token)
    ]
    delete(api, left)


def _none(pool: PoolPlan, missing: Sequence[str]) -> Diagnostic:
    error = provider_error(
        NO_CAPACITY,
        f'pool "{pool.name}": no option may be tried for {len(missing)} nodes',
        detail="The nodes that run now were bought on an option that is no longer listed.",
        hint="write mixed: true, or let the running nodes end first",
    )
    return error.diagnostics[0]


def name_queued(api: Api, plan: SitePlan, machines: Sequence[Instance]) -> int:
    """Label the queued machines that have no name yet; return how many. May be repeated."""
    named = 0
    for pool in plan.pools:
        for machine, host in new_names(pool, machines):
            path = f"{api.in_zone(machine.zone_name)}/instances/{machine.name}/setLabels"
            labels = {**machine.labels, HOST: label_value(host)}
            body: Body = {"labels": labels, "labelFingerprint": machine.label_fingerprint}
            api.wait(api.call(Operation, path, method="POST", body=body), resource=machine.name)
            named += 1
    return named


def new_names(pool: PoolPlan, machines: Sequence[Instance]) -> list[tuple[Instance, str]]:
    """Return (machine, name) of those without one: free names in order, machines by theirs."""
    if not any(option.market == "flex-start" for option in pool.offers):
        return []
    mine = [m for m in machines if m.pool == label_value(pool.name) and not m.token]
    purchased = {machine.labels[HOST] for machine in mine if HOST in machine.labels}
    free = [host for host in pool.nodes if host not in purchased]
    nameless = [m for m in mine if HOST not in m.labels and m.status in ALIVE]
    return list(zip(sorted(nameless, key=lambda m: m.name), free, strict=False))
