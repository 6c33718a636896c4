"""A site that exists only in a file: thousands of nodes, latency and faults."""

from typing import Annotated, ClassVar

from msgspec import Meta

from gcluster.schemas.spec.noun import Noun
from gcluster.schemas.spec.sites.site import SiteNoun
from gcluster.schemas.spec.units import Duration


class SimulatedFaults(Noun, frozen=True):
    """What goes wrong, reproducibly for one seed."""

    seed: Annotated[int, Meta(ge=0, description="Seed of the fault sequence.")] = 0
    create_failure_rate: Annotated[
        float, Meta(ge=0, le=1, description="Share of create calls that are refused (no capacity).")
    ] = 0.0
    lost_response_rate: Annotated[
        float,
        Meta(ge=0, le=1, description="Share of create calls that succeed but answer an error."),
    ] = 0.0
    boot_failure_rate: Annotated[
        float, Meta(ge=0, le=1, description="Share of nodes that are created but never answer.")
    ] = 0.0


class SimulatedSite(SiteNoun, frozen=True, tag_field="provider", tag="simulated"):
    """Simulated nodes: nothing runs on them and no job can; plans, state and scale are real."""

    runs_jobs: ClassVar[bool] = False

    latency: Annotated[
        Duration | None, Meta(description="How long each provider call takes; default no time.")
    ] = None
    max_nodes: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Nodes the site can give; default unlimited."),
    ] = None
    faults: Annotated[SimulatedFaults, Meta(description="Injected faults.")] = SimulatedFaults()
