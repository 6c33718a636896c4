"""A cloud's program of one site: stacks/CLOUD/program/site.py, found by the cloud's name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from .component import tag_everything, wait_for_slow_kinds
from .recording.record import record

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog
    from ...schemas.spec import CloudSite, ClusterSpec
    from .plan import CloudPlan
    from .recording.graph import RecordedGraph


def begin(plan: CloudPlan[Any]) -> None:
    """Have the running program tag all that it makes and wait for what is slow; call it first."""
    tag_everything(plan.labels)
    wait_for_slow_kinds(plan.names.cloud)


def record_site(
    spec: ClusterSpec, site: str, catalog: Catalog, *, preview: bool = False, **choices: Any
) -> RecordedGraph:
    """Return what a site's program asks for; needs no credentials.

    Args:
        spec: a spec that passed its checks.
        site: name of a cloud's site of it.
        catalog: has its machine types.
        preview: as the engine's preview runs it: outputs are unknown.
        choices: what the cloud's own `program` takes beside these.

    Raises:
        RecordError: it is not recordable.
        ProviderError: the spec asks for what the cloud does not make.
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
