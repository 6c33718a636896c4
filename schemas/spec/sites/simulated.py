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

    seed: Annotated[int, Meta(ge=0)] = 0
    """Seed of the fault sequence."""
    create_failure_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of create calls that are refused (no capacity)."""
    lost_response_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of create calls that succeed but answer an error."""
    boot_failure_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of nodes that are created but never answer."""
    delete_failure_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of deletions that are accepted and don't happen."""
    throttle_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of calls that are refused as too many."""
    listing_lag: Duration | None = None
    """How long a new node may be missing from listings; default no time."""


class SimulatedSite(SiteModel, frozen=True, tag_field="provider", tag="simulated"):
    """Simulated nodes: nothing runs on them and no job can; plans, state and scale are real."""

    UPDATES: ClassVar = updates(none="latency max_nodes faults")

    frees_any_machine: ClassVar[bool] = True
    runs_jobs: ClassVar[bool] = False

    latency: Duration | None = None
    """How long each provider call takes; default no time."""
    max_nodes: Annotated[int, Meta(ge=0)] | None = None
    """Nodes the site can give; default unlimited."""
    faults: SimulatedFaults = SimulatedFaults()
    """Injected faults."""
