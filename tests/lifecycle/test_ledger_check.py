"""What is there and in no ledger is named with its price; what is known, or kept, is not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.cluster.progress import Progress
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.down.ledger_check import (
    AFTER_END,
    BEGUN,
    UNKNOWN,
    LedgerCheck,
    check_ledger,
    close_missing,
)
from gcluster.lifecycle.state import Ledger, acquire
from gcluster.stacks.provider import Leftover, ProviderError, SiteContext, provider_error
from gcluster.stacks.simulated import fleet
from gcluster.stacks.simulated.cloud import Order
from gcluster.stacks.simulated.provider import SimulatedProvider

from .sample_cluster import SampleCluster, tree
from .test_kept_data import Running, running  # noqa: F401  # a fixture


@pytest.fixture
def up(sample: SampleCluster) -> SampleCluster:
    """Give a cluster that came up."""
    sample.up()
    return sample


def _check(sample: SampleCluster) -> LedgerCheck:
    return check_ledger(sample.open(running=True))


def _make_by_hand(sample: SampleCluster, name: str, token: str = "nobody") -> None:  # noqa: S107  # no secret
    """Make a node at the site, past gcluster."""
    (site,) = open_sites(sample.open(running=True))
    order = Order(
        name=name, pool="gpu", role="compute", machine=None, token=token, elastic="by hand"
    )
    fleet.cloud(site.context).create([order])


def _names(check: LedgerCheck) -> list[str]:
    return [f"{stray.site}/{stray.item.kind}/{stray.item.name}" for stray in check.leftovers]


def test_a_cluster_that_runs_has_no_leftover(up: SampleCluster) -> None:
    check = _check(up)
    assert (check.exit_code, check.listed, check.leftovers) == (Exit.OK, 4, ())


def test_what_was_never_applied_has_none(sample: SampleCluster) -> None:
    assert _check(sample).exit_code is Exit.OK
    assert not sample.state.exists(), "looking writes nothing"


def test_what_was_made_by_hand_with_the_tag_is_named_with_its_price(up: SampleCluster) -> None:
    _make_by_hand(up, "gpu777")
    check = _check(up)
    assert check.exit_code is Exit.LEFTOVERS
    assert _names(check) == ["lab/node/gpu777"]
    assert (check.leftovers[0].why, check.usd_per_hour) == (UNKNOWN, 0.0)


def test_looking_changes_nothing(up: SampleCluster) -> None:
    _make_by_hand(up, "gpu777")
    before = tree(up.state)
    _check(up)
    assert tree(up.state) == before


def test_what_a_killed_up_made_and_did_not_report_is_a_leftover_until_the_next_up(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "created_many", die)
        with pytest.raises(Killed):
            sample.up()
    check = _check(sample)
    assert check.exit_code is Exit.LEFTOVERS
    assert {stray.why for stray in check.leftovers} == {BEGUN}
    sample.up()
    assert _check(sample).exit_code is Exit.OK


def test_after_down_nothing_is_left(up: SampleCluster) -> None:
    up.down()
    check = _check(up)
    assert (check.exit_code, check.ended, check.listed) == (Exit.OK, True, 0)


def test_what_down_could_not_remove_is_a_leftover_though_the_ledger_has_it(
    up: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = Leftover(kind="volume", name="scratch", provider_id="vol-1", usd_per_hour=0.25)
    machine = Leftover(kind="node", name="gpu001", provider_id="i-1")
    monkeypatch.setattr(SimulatedProvider, "sweep", lambda *_: (volume, machine))
    assert up.down().exit_code is Exit.LEFTOVERS
    check = _check(up)
    assert check.exit_code is Exit.LEFTOVERS
    assert _names(check) == ["lab/volume/scratch", "lab/node/gpu001"]
    assert {stray.why for stray in check.leftovers} == {AFTER_END}
    assert (check.usd_per_hour, check.known_usd_per_hour) == (None, 0.25), "unknown is never 0"


def test_a_down_that_was_killed_has_ended_the_cluster_all_the_same(up: SampleCluster) -> None:
    def die(_: Progress) -> None:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        up.down(die)
    check = _check(up)
    assert (check.ended, check.exit_code) == (True, Exit.LEFTOVERS)
    assert len(check.leftovers) == 4


def test_a_site_that_can_not_be_queried_is_no_clean_site(
    up: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_: SimulatedProvider, context: SiteContext) -> tuple[Leftover, ...]:
        raise provider_error("GC966", f"{context.site} can't be reached")

    monkeypatch.setattr(SimulatedProvider, "sweep", silent)
    check = _check(up)
    assert check.exit_code is Exit.FAILED
    assert check.silent == {"lab": "lab can't be reached"}
    assert [d.code for d in check.diagnostics] == ["GC966"]


def test_what_the_ledger_has_and_the_site_has_not_is_reported(up: SampleCluster) -> None:
    (site,) = open_sites(up.open(running=True))
    cloud = fleet.cloud(site.context)
    cloud.delete([cloud.list()["gpu002"].id])
    check = _check(up)
    assert [gone.key for gone in check.absent] == ["node/gpu002"]
    assert check.exit_code is Exit.OK, "nothing is paid for"


@pytest.mark.parametrize(("lag", "kept"), [("", False), ("listing_lag: 1h", True)])
def test_what_a_list_may_not_have_yet_stays_on_record(
    up: SampleCluster, lag: str, *, kept: bool
) -> None:
    up.write(site=f", faults: {{{lag}}}" if lag else "")
    cluster = up.open()
    (site,) = open_sites(cluster)
    cloud = fleet.cloud(site.context)
    with suppress(KeyError):  # by the lag no list has any of them
        cloud.delete([cloud.list()["gpu002"].id])
    with acquire(cluster.store, ["lab"], reason="test") as lock:
        cluster.events.bind(run="", epochs=lock.epochs)
        close_missing(cluster, site)
    assert ("lab/node/gpu002" in up.in_the_ledger()) is kept


def test_what_is_in_a_stack_is_known(up: SampleCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Leftover(kind="network", name="vpc", provider_id="vpc-1")
    monkeypatch.setattr(SimulatedProvider, "sweep", lambda *_: (network,))
    assert _names(_check(up)) == ["lab/network/vpc"]

    def booked(_: SimulatedProvider, context: SiteContext, found: object) -> frozenset[str]:
        del context, found
        return frozenset({"vpc-1"})

    monkeypatch.setattr(SimulatedProvider, "has_stack", True)
    monkeypatch.setattr(SimulatedProvider, "tracked_ids", booked)
    assert _names(_check(up)) == []


def test_a_stack_that_can_not_be_read_is_no_clean_site(
    up: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def booked(*_: object) -> frozenset[str]:
        raise ProviderError(provider_error("GC965", "no engine").diagnostics[0])

    monkeypatch.setattr(SimulatedProvider, "has_stack", True)
    monkeypatch.setattr(SimulatedProvider, "tracked_ids", booked)
    assert _check(up).exit_code is Exit.FAILED


def test_kept_data_is_reported_and_is_no_leftover(running: Running) -> None:  # noqa: F811  # the fixture
    running.down()
    check = check_ledger(running.open())
    assert check.exit_code is Exit.OK
    assert check.kept
    assert all(item.kept_data for item in check.kept)


def test_a_ledger_of_another_path_is_none(own_places: Path) -> None:
    sample = SampleCluster(own_places / "elsewhere" / "cluster.yaml")
    assert _check(sample).listed == 0
