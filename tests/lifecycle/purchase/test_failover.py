"""A pool goes to its next site where its own has none of it; the cloud is a double."""

from __future__ import annotations

import pytest
from tests.lifecycle.cloud_double import (
    EC2_MESSAGE,
    NODES,
    SPOT,
    Killed,
    PurchaseScenario,
    kill_at,
)
from typer.testing import CliRunner

from gcluster.cli.app import app
from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.cluster.progress import Finding, Progress, silent
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.planning.preflight.obstacles import preflight_of
from gcluster.lifecycle.up.phase import UpResult
from gcluster.lifecycle.up.up import up
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.provider import SiteContext

EAST, WEST, SOUTH = SPOT, "spot-usw2-az1", "spot-use2-az1"

SPEC = """\
apiVersion: gcluster/v1
name: progress
sites:
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {cidr: 10.1.0.0/16, admin_cidrs: [192.0.2.0/24]}
  west: {provider: aws, region: us-west-2, zone_id: usw2-az1, network: {cidr: 10.2.0.0/16}}
  south: {provider: aws, region: us-east-2, zone_id: use2-az1, network: {cidr: 10.3.0.0/16}}
links:
  - {between: [east, west], via: peering, id: pcx-0abc}
  - {between: [east, south], via: peering, id: pcx-0abd}
pools:
  head: {site: east, role: controller, machine: m7i.4xlarge, public_address: true}
  gpu: {site: east, machine: p5.48xlarge, count: 2, market: [spot], failover: [west, south]}
scheduler: {type: slurm}
"""


def write(purchase: PurchaseScenario, text: str = SPEC) -> str:
    """Write the spec into a file; return its path."""
    path = purchase.folder / "cluster.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def once(path: str) -> UpResult:
    """Run `up` at the site where the pool is now."""
    return up(open_cluster(path), silent, confirm=lambda _: True)


def place(path: str) -> str:
    """Return the site of the pool, as every command sees it."""
    return open_cluster(path).spec.pools["gpu"].site


def test_the_command_goes_on_at_the_next_site_and_leaves_nothing_at_the_first(
    purchase: PurchaseScenario,
) -> None:
    path = write(purchase)
    purchase.cloud.stock[EAST] = 1
    ran = CliRunner().invoke(app, ["up", path, "--yes"])
    assert ran.exit_code == Exit.OK, ran.output
    assert (purchase.cloud.on(EAST), purchase.cloud.on(WEST)) == ([], NODES)
    applied = open_cluster(path, running=True)
    assert applied.spec.pools["gpu"].site == "west", "the state says where it was applied"
    assert place(path) == "west"
    assert not once(path).changed


def test_a_site_after_the_other_is_tried_and_the_next_run_begins_with_the_first(
    purchase: PurchaseScenario,
) -> None:
    path = write(purchase)
    purchase.cloud.stock = {EAST: 0, WEST: 0, SOUTH: 0}
    tried = [once(path).next_sites for _ in range(3)]
    assert tried == [{"gpu": "west"}, {"gpu": "south"}, {}]
    assert set(purchase.cloud.machines) == {"head"}
    purchase.cloud.stock = {EAST: 0}
    assert once(path).next_sites == {"gpu": "west"}


def test_the_clouds_message_and_the_next_site_are_reported(purchase: PurchaseScenario) -> None:
    path = write(purchase)
    purchase.cloud.stock[EAST] = 0
    heard: list[Progress] = []
    result = up(open_cluster(path), heard.append, confirm=lambda _: True)
    assert result.exit_code is Exit.FAILED
    [message] = [each.diagnostic for each in heard if isinstance(each, Finding)]
    assert (message.code, message.hint) == (
        "GC953",
        "it is made at west next, with a plan of its own",
    )
    assert EC2_MESSAGE in message.detail


def test_nodes_that_exist_keep_a_pool_where_it_is(purchase: PurchaseScenario) -> None:
    path = write(purchase)
    purchase.cloud.stock = {EAST: 2}
    assert once(path).exit_code is Exit.OK
    write(purchase, SPEC.replace("count: 2", "count: 4"))
    result = once(path)
    assert (result.exit_code, result.next_sites) == (Exit.FAILED, {})
    assert purchase.cloud.on(EAST) == NODES
    assert place(path) == "east"


def test_a_run_that_is_killed_at_the_second_site_continues_there(
    purchase: PurchaseScenario,
) -> None:
    path = write(purchase)
    purchase.cloud.stock[EAST] = 0
    assert once(path).next_sites == {"gpu": "west"}
    kill_at(purchase, 2)
    with pytest.raises(Killed):
        once(path)
    purchase.cloud.stock.clear()
    assert once(path).exit_code is Exit.OK
    assert (purchase.cloud.on(EAST), purchase.cloud.on(WEST)) == ([], NODES)


def test_a_named_pool_is_bought_again_at_its_first_site(purchase: PurchaseScenario) -> None:
    path = write(purchase)
    purchase.cloud.stock[EAST] = 0
    once(path)
    once(path)
    purchase.cloud.stock.clear()
    ran = CliRunner().invoke(app, ["up", path, "--yes", "--from-first-option", "gpu"])
    assert ran.exit_code == Exit.OK, ran.output
    assert purchase.cloud.on(EAST) == NODES
    assert place(path) == "east"


def test_the_plan_has_every_site_until_nodes_are_held(purchase: PurchaseScenario) -> None:
    path = write(purchase)
    lists = [each for each in make_plan(open_cluster(path)).fallback_lists if each.pool == "gpu"]
    assert [(each.site, each.after) for each in lists] == [
        ("east", ""),
        ("west", "east"),
        ("south", "west"),
    ]
    assert [each.purchase_options[0].usd_per_hour for each in lists] == [110.08] * 3
    once(path)
    lists = [each for each in make_plan(open_cluster(path)).fallback_lists if each.pool == "gpu"]
    assert [each.site for each in lists] == ["east"]


def test_the_reserved_capacity_of_one_site_is_not_requested_at_another(
    purchase: PurchaseScenario,
) -> None:
    path = write(purchase, SPEC.replace("[spot]", "[{reservation: cr-0abc}, spot]"))
    options = [
        option.key
        for each in make_plan(open_cluster(path)).fallback_lists
        if each.site == "west"
        for option in each.purchase_options
    ]
    assert options == [WEST]


def test_what_another_site_lacks_is_known_before_and_blocks_nothing(
    purchase: PurchaseScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(purchase)

    def quota(context: SiteContext) -> tuple[Diagnostic, ...]:
        here = [n for n, pool in context.spec.pools.items() if pool.site == context.site]
        if context.site != "west" or "gpu" not in here:
            return ()
        return (Diagnostic(code="GC972", severity=Severity.ERROR, summary="a quota is 0"),)

    monkeypatch.setattr(purchase.cloud, "preflight", quota)
    answers = {each.site: each.diagnostics for each in preflight_of(open_cluster(path))}
    assert (answers["east"], answers["south"]) == ((), ())
    [found] = answers["west"]
    assert (found.code, found.severity, found.summary) == (
        "GC972",
        Severity.WARNING,
        "for failover of pool gpu: a quota is 0",
    )
    assert once(path).exit_code is Exit.OK
