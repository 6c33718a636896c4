"""A control plane that gives no answer holds `up` up, but not from fixing that very thing."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.open_site import OpenSite
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.phases import refuse_silent
from gcluster.lifecycle.planning.changes import SitePlan
from gcluster.lifecycle.status.observe import Observation
from gcluster.stacks.aws.provider import AwsProvider
from gcluster.stacks.provider import Effect, Resource, ResourceChange

from .eks_spec import spec_of

NONE = ClusterInventory(cluster="demo", hosts=())


class ClusterDouble:
    """What is queried of a cluster here."""

    spec = spec_of()


class CloudDouble(AwsProvider):
    """A cloud that says what became of what the stack has."""

    since: tuple[ResourceChange, ...] = ()

    def detect_drift(self, context: Any) -> tuple[ResourceChange, ...]:
        """Return it."""
        del context
        return self.since


def change(effect: Effect, kind: str = "Cluster") -> ResourceChange:
    return ResourceChange(effect=effect, resource=Resource(kind=kind, name="demo-here-eks"))


def refuse(
    *planned: ResourceChange, since: ResourceChange | None = None, site: str = "here"
) -> None:
    cloud = CloudDouble()
    cloud.since = () if since is None else (since,)
    opened = OpenSite(name="here", provider=cast("Any", cloud), context=cast("Any", None))
    observation = Observation(
        sites=(SitePlan(site=site, provider="aws", changes=planned),),
        existing=NONE,
        desired=NONE,
        stamps={},
        unreachable={},
        taken_at=0.0,
        silent="this machine: i/o timeout",
    )
    refuse_silent(cast("Cluster", ClusterDouble()), (opened,), observation)


@pytest.mark.parametrize("effect", ["create", "update", "replace"])
def test_up_that_changes_the_control_plane_itself_is_let_through(effect: Effect) -> None:
    refuse(change(effect))


def test_up_that_makes_a_deleted_one_again_is_let_through() -> None:
    refuse(since=change("delete"))


def test_up_that_leaves_it_as_it_is_is_refused_and_reported_what_would_fix_it() -> None:
    with pytest.raises(LifecycleError) as refused:
        refuse(change("keep"), change("update", kind="Instance"), since=change("update"))
    [message] = refused.value.diagnostics
    assert message.code == "GC1043"
    assert "admin_cidrs" in message.hint
    with pytest.raises(LifecycleError):
        refuse(change("update"), site="another")
