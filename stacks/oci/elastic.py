"""Elastic nodes: launched into the pool's RDMA network, all of them or none, and ended by name.

No stack is involved. OCI has no call for many, so each node is a separate launch, all at once. A
launch has a retry token from the ledger's intent and the node's name: repeated within 24 hours it
starts nothing new. After that the node is found by its tags, which it has from the start.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ...schemas.diagnostics import Diagnostic
from ..provider import ProviderError, provider_error
from ..pulumi.elastic import no_capacity, open_offers, to_end
from ..pulumi.engine.events import NO_CAPACITY
from ..pulumi.names import HOST, OFFER, POOL, TOKEN
from .api import Answer, Api, OciError
from .hosts import ENDED, Instance, instances
from .plan.types import OfferPlan, PoolPlan, SitePlan

_AT_ONCE = 8
"""Launches at the same time: the request rate of a tenancy is shared."""


class _Template(Answer, frozen=True):
    id: str
    freeform_tags: dict[str, str] = msgspec.field(default_factory=dict)


class _LaunchDetails(Answer, frozen=True):
    availability_domain: str = ""


class _InstanceDetails(Answer, frozen=True):
    launch_details: _LaunchDetails = _LaunchDetails()


class _Configuration(Answer, frozen=True):
    id: str
    instance_details: _InstanceDetails = _InstanceDetails()


def grow(
    api: Api, plan: SitePlan, pool: PoolPlan, names: Sequence[str], token: str
) -> tuple[Instance, ...]:
    """Return the machines of these names, started where they are missing.

    The pool's offers are tried in their order, each for all that is missing: a fabric domain is
    bought from one option. A try that brings fewer is undone before the next.

    Raises:
        ProviderError: no offer had all of them; nothing is left of the tries.
    """
    known = instances(api, plan, ended=True, pool=pool.name)
    there = [machine for machine in known if machine.is_alive]
    mine = tuple(machine for machine in there if machine.host in set(names))
    missing = [name for name in names if name not in {machine.host for machine in mine}]
    if not missing:
        return mine
    ended = Counter(m.host for m in known if not m.is_alive and m.token == token)
    findings: list[Diagnostic] = []
    for offer in open_offers(pool, {machine.offer for machine in there}):
        burst = _Burst(api, plan, pool, offer, token=token, ended=ended)
        started, refused = burst.launch(missing)
        if not refused:
            return tuple(sorted((*mine, *started), key=lambda machine: machine.host))
        terminate(api, [machine.id for machine in started])
        ended.update(machine.host for machine in started)
        findings += refused
        if any(finding.code != NO_CAPACITY for finding in refused):
            break  # another option won't help against a missing right or a wrong configuration
    raise ProviderError(no_capacity(pool, missing), *dict.fromkeys(findings))


def shrink(api: Api, plan: SitePlan, names: Iterable[str]) -> dict[str, str]:
    """End elastic nodes; return name -> instance of those that were there.

    Raises:
        ProviderError: GC917, one of them is a node of the spec; then nothing was ended.
    """
    there = {m.host: m.id for m in instances(api, plan) if m.token and m.host}
    gone = to_end(plan, set(names), there)
    terminate(api, gone.values())
    return gone


def terminate(api: Api, machines: Iterable[str]) -> None:
    """End machines, with their boot volumes."""

    def end(machine: str) -> None:
        call = "terminate_instance"
        api.call(object, "compute", call, machine, preserve_boot_volume=False)

    with ThreadPoolExecutor(_AT_ONCE) as workers:
        list(workers.map(end, machines))


def retry_token(token: str, host: str, offer: str, ended: int) -> str:
    """Return the idempotency token of a launch, 64 characters at most.

    One that was undone is another launch: OCI would answer the old token with the ended machine.
    """
    return hashlib.sha256(f"{token} {host} {offer} {ended}".encode()).hexdigest()


class _Burst:
    """Launches by one offer."""

    def __init__(
        self,
        api: Api,
        plan: SitePlan,
        pool: PoolPlan,
        offer: OfferPlan,
        *,
        token: str,
        ended: Counter[str],
    ) -> None:
        self._api = api
        self._plan = plan
        self._pool = pool
        self._offer = offer
        self._token = token
        self._ended = ended

    def launch(self, names: Sequence[str]) -> tuple[list[Instance], list[Diagnostic]]:
        """Start nodes; return what was started, and OCI's message where one was not."""
        template = self._template()
        with ThreadPoolExecutor(_AT_ONCE) as workers:
            answers = list(workers.map(lambda name: self._one(template, name), names))
        started = [answer for answer in answers if isinstance(answer, Instance)]
        refused = [
            finding
            for answer in answers
            if isinstance(answer, OciError)
            for finding in answer.diagnostics
        ]
        return started, refused

    def _one(self, template: _Configuration, host: str) -> Instance | OciError:
        details = {
            "compartmentId": self._plan.compartment,
            "availabilityDomain": template.instance_details.launch_details.availability_domain,
            "instanceConfigurationId": template.id,
            "displayName": self._plan.names(host),
            "freeformTags": self._tags(host),
        }
        once = retry_token(self._token, host, self._offer.key, self._ended[host])
        try:
            made = self._api.call(
                Instance, "compute", "launch_instance", details, opc_retry_token=once
            )
        except OciError as error:
            return error
        if made.lifecycle_state in ENDED:
            return OciError(NO_CAPACITY, no_capacity(self._pool, [host]))
        return made

    def _tags(self, host: str) -> dict[str, str]:
        own = {POOL: self._pool.name, OFFER: self._offer.key, TOKEN: self._token, HOST: host}
        return {**self._pool.tags, **self._plan.labels.tags(), **own}

    def _template(self) -> _Configuration:
        wanted = {
            **self._plan.labels.found_by(),
            POOL: self._pool.name,
            OFFER: self._offer.key,
        }
        kind, call = tuple[_Template, ...], "list_instance_configurations"
        for page in self._api.pages(kind, "management", call, self._plan.compartment):
            for found in page:
                if wanted.items() <= found.freeform_tags.items():
                    get = "get_instance_configuration"
                    return self._api.call(_Configuration, "management", get, found.id)
        raise provider_error(
            "GC978",
            f'pool "{self._pool.name}" has no instance configuration for {self._offer.key}',
            hint="run `gcluster up`: it makes the configurations that elastic nodes start from",
        )
