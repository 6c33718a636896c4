"""`status` lists the nodes that come and go: where each is, and why one doesn't come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gcluster.cli.console import Console
from gcluster.cli.render.inspect.status import status_text
from gcluster.lifecycle.operations.burst.agent.ledger import BurstFold
from gcluster.lifecycle.state import BurstStepped
from gcluster.lifecycle.state.event_types import BurstStep
from gcluster.lifecycle.state.events import Event
from gcluster.lifecycle.status.conditions import ClusterStatus
from gcluster.lifecycle.status.elastic import elastic_status
from gcluster.lifecycle.status.slurm import SchedulerView
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

BEGIN = datetime(2026, 11, 28, 12, tzinfo=UTC)
SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: {{min: 1, max: 5}}}}
scheduler: {scheduler}
"""
STEPS: tuple[tuple[BurstStep, str, str], ...] = (
    ("requested", "gpu[002-004]", ""),
    ("made", "gpu[002-003]", ""),
    ("refused", "gpu004", "no capacity"),
    ("joined", "gpu002", ""),
    ("leaving", "gpu003", "it did not join within 600 s"),
)


def _spec(scheduler: str) -> ClusterSpec:
    spec = load_text(SPEC.format(scheduler=scheduler), file="demo.yaml").spec
    assert spec is not None
    return spec


def _ledger() -> BurstFold:
    fold = BurstFold()
    fold.apply(
        Event(
            time=BEGIN + timedelta(seconds=number),
            seq=number,
            actor="ada@here",
            run="",
            epochs={},
            body=BurstStepped(
                site="here", pool="gpu", step=step, nodes=nodes, burst="one", reason=reason
            ),
        )
        for number, (step, nodes, reason) in enumerate(STEPS, start=1)
    )
    return fold


@pytest.mark.parametrize(
    ("scheduler", "state"),
    [("{type: kubernetes, kueue: false}", "ready"), ("{type: slurm}", "mix")],
)
def test_every_elastic_node_is_listed_with_its_state_its_site_and_why(
    scheduler: str, state: str
) -> None:
    view = SchedulerView(states={"gpu001": state, "gpu002": state})
    found = elastic_status(_spec(scheduler), _ledger(), view)
    assert [(one.name, one.site, one.state, one.scheduler_state, one.reason) for one in found] == [
        ("gpu002", "here", "joined", state, ""),
        ("gpu003", "here", "leaving", "", "it did not join within 600 s"),
        ("gpu004", "here", "refused", "", "no capacity"),
        ("gpu005", "", "off", "", ""),
    ]
    status = ClusterStatus(
        cluster="demo", conditions=(), nodes=(), queue=None, certificate=None, elastic=found
    )
    now = BEGIN + timedelta(seconds=90)
    lines = status_text(status, Console(width=120), now=now).splitlines()
    assert [" ".join(line.split()) for line in lines if line.startswith("  gpu")] == [
        f"gpu002 gpu here joined {state} requested 89 s ago",
        "gpu003 gpu here leaving - it did not join within 600 s, requested 89 s ago",
        "gpu004 gpu here refused - no capacity",
    ]
    assert lines[-1] == "  1 more, off"


def test_a_node_that_the_spec_has_no_more_is_listed_while_its_machine_may_be_there() -> None:
    smaller = SPEC.replace("max: 5", "max: 2").format(scheduler="{type: slurm}")
    spec = load_text(smaller, file="demo.yaml").spec
    assert spec is not None
    assert [one.name for one in elastic_status(spec, _ledger(), None)] == ["gpu002", "gpu003"]
