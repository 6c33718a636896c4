"""A site that exists only in a file: thousands of nodes, latency and faults."""

from typing import Annotated, ClassVar

from msgspec import Meta

from ..model import SpecModel, updates
from ..units import Duration
from .site import SiteModel


class SimulatedFaults(SpecModel, frozen=True):
    """What goes wrong, reproducibly for one seed."""

    UPDATES: ClassVar = updates(
        none="seed create_failure_rate lost_response_rate boot_failure_rate delete_failure_rate"
        " throttle_rate listing_lag",
    )

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
    delete_failure_rate: Annotated[
        float,
        Meta(ge=0, le=1, description="Share of deletions that are accepted and don't happen."),
    ] = 0.0
    throttle_rate: Annotated[
        float, Meta(ge=0, le=1, description="Share of calls that are refused as too many.")
    ] = 0.0
    listing_lag: Annotated[
        Duration | None,
        Meta(description="How long a new node may be missing from listings; default no time."),
    ] = None


class SimulatedSite(SiteModel, frozen=True, tag_field="provider", tag="simulated"):
    """Simulated nodes: nothing runs on them and no job can; plans, state and scale are real."""

    UPDATES: ClassVar = updates(none="latency max_nodes faults")

    frees_any_machine: ClassVar[bool] = True
    runs_jobs: ClassVar[bool] = False

    latency: Annotated[
        Duration | None, Meta(description="How long each provider call takes; default no time.")
    ] = None
    max_nodes: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Nodes the site can give; default unlimited."),
    ] = None
    faults: Annotated[SimulatedFaults, Meta(description="Injected faults.")] = SimulatedFaults()
