"""A cloud's program of one site: stacks/CLOUD/program/site.py, found by the cloud's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

import pulumi

from ...schemas.catalog import Catalog
from ...schemas.spec import CloudSite, ClusterSpec
from .component import Args, Component, tag_everything, wait_for_slow_kinds
from .plan import CloudPlan
from .recording.graph import RecordedGraph
from .recording.record import record

PlanT = TypeVar("PlanT", bound=CloudPlan[Any])
A = TypeVar("A", bound=Args)
C = TypeVar("C", bound=Component[Any])


class SiteProgram(Generic[PlanT]):
    """The components of one site while they are put together."""

    options: pulumi.ResourceOptions | None = None
    """Of components: the provider that they are made through; None: the cloud's default one."""

    def __init__(self, plan: PlanT, purchased: Mapping[str, str]) -> None:
        """Begin the running program: all that it makes is tagged, and slow kinds get their time.

        Args:
            plan: the site.
            purchased: node -> key of the offer that it is bought by; absent: the first, "": not
                made.
        """
        self.plan = plan
        self.purchased = purchased
        tag_everything(plan.labels)
        wait_for_slow_kinds(plan.names.cloud)

    def make(
        self, kind: Callable[[str, A, pulumi.ResourceOptions | None], C], what: str, args: A
    ) -> C:
        """Return a component; `what` is its name in the site."""
        return kind(self.plan.names(what), args, self.options)


def record_site(
    spec: ClusterSpec, site: str, catalog: Catalog, *, preview: bool = False, **choices: Any
) -> RecordedGraph:
    """Return the resources of a site's program; needs no credentials.

    Args:
        spec: a spec that passed its checks.
        site: name of a cloud's site of it.
        catalog: has its machine types.
        preview: as the engine's preview runs it: outputs are unknown.
        choices: further arguments of the cloud's own `program`.

    Raises:
        RecordError: it is not recordable.
        ProviderError: the spec needs what the cloud does not offer.
    """
    here = cast("CloudSite", spec.sites[site])
    module = import_module(f"..{here.provider}.program.site", __package__)
    return record(
        module.program(spec, site, catalog, **choices),
        project=f"gcluster-{spec.name}",
        stack=site,
        preview=preview,
        answers=module.answers(here.region),
    )
