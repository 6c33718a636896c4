"""How a running pool is changed without hurting its jobs."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from .noun import Noun, updates
from .units import Duration

SHARE_AT_ONCE = 0.1
"""Share of a pool that may be out of service at once where the spec says nothing."""


class Update(Noun, frozen=True):
    """A rolling change: nodes are drained, changed, verified and given back, a few at a time."""

    UPDATES: ClassVar = updates(none="max_unavailable max_failed drain_timeout jobs")

    max_unavailable: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Nodes of the pool out of service at once; default: a tenth of the pool, "
            "at least one.",
        ),
    ] = None
    max_failed: Annotated[
        int,
        Meta(ge=0, description="Stop when more nodes than this failed; the rest stays as it was."),
    ] = 0
    drain_timeout: Annotated[
        Duration | None,
        Meta(
            description="How long to wait for the jobs of a drained node; then it is given back "
            "unchanged and named. Default: 1h."
        ),
    ] = None
    jobs: Annotated[
        Literal["wait", "requeue"],
        Meta(description="Jobs on a drained node: wait for their end, or put them back in line."),
    ] = "wait"

    def at_once(self, nodes: int) -> int:
        """Return how many of a pool's nodes may be out of service at once."""
        return self.max_unavailable or max(1, int(nodes * SHARE_AT_ONCE))

    @property
    def wait_s(self) -> float:
        """Seconds to wait for the jobs of a drained node."""
        return 3600.0 if self.drain_timeout is None else self.drain_timeout.value
