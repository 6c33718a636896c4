"""Data outlives `down`: it is shown each time with its price, and deleted only when it is named."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.index import known_clusters
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.down.down import DownResult, down
from gcluster.lifecycle.secrets import makers as passphrase
from gcluster.lifecycle.state import Journal
from gcluster.lifecycle.status.health import read_status
from gcluster.lifecycle.up.up import up
from gcluster.schemas.load import load_text
from gcluster.stacks.provider import Leftover, SiteContext
from gcluster.stacks.simulated.provider import SimulatedProvider

from .sample_cluster import tree

SPEC = """\
apiVersion: gcluster/v1
name: trial
sites: {lab: {provider: simulated}, far: {provider: simulated}}
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 2}
  more: {site: far, machine: sim.h100x8, count: 1}
storage:
  fast: {type: lustre, mount: /fast, site: lab, capacity: 4800 GiB}
  runs: {type: object, mount: /runs, site: far, bucket: 's3://acme-runs', create: true}
  old: {type: object, mount: /old, site: far, bucket: 's3://acme-old'}
scheduler: {type: slurm}
"""
MADE = {
    "lab": Leftover(kind="file-system", name="fs-1", provider_id="fs-1", storage=("fast",)),
    "far": Leftover(kind="bucket", name="acme-runs", provider_id="acme-runs", storage=("runs",)),
}


class Data:
    """A double of what clouds add to the simulated provider: data, and a stack that has it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put data on both sites, as an `up` would."""
        self.there = dict(MADE)
        self.passphrases: dict[str, str] = {}
        refresh, destroy, apply = (
            SimulatedProvider.sweep, SimulatedProvider.destroy, SimulatedProvider.apply,
        )  # fmt: skip

        def found(context: SiteContext) -> tuple[Leftover, ...]:
            item = self.there.get(context.site)
            stays = item is not None and not set(item.storage) <= context.delete_data
            return () if item is None else (msgspec.structs.replace(item, kept_data=stays),)

        def looked(provider: SimulatedProvider, context: SiteContext) -> tuple[Leftover, ...]:
            return (*refresh(provider, context), *found(context))

        def gone(provider: SimulatedProvider, context: SiteContext) -> None:
            destroy(provider, context)
            if [item for item in found(context) if not item.kept_data]:
                del self.there[context.site]

        def applied(provider: SimulatedProvider, context: SiteContext) -> None:
            self.passphrases[context.site] = context.passphrase()
            apply(provider, context)

        monkeypatch.setattr(SimulatedProvider, "refresh", looked)
        monkeypatch.setattr(SimulatedProvider, "sweep", looked)
        monkeypatch.setattr(SimulatedProvider, "destroy", gone)
        monkeypatch.setattr(SimulatedProvider, "apply", applied)


def unchecked(path: Path) -> Cluster:
    """Open a spec that the checks would refuse: no simulated site has buckets."""
    text = path.read_text(encoding="utf-8")
    loaded = load_text(text, file=str(path), check=False)
    assert loaded.spec is not None
    state = f"file://{path.parent}/.gcluster/{loaded.spec.name}"
    return Cluster(spec=loaded.spec, text=text, spec_path=path, state_url=state)


class Running:
    """A cluster on two sites that both hold data."""

    def __init__(self, folder: Path, data: Data) -> None:
        """Bring it up."""
        self.path = folder / "cluster.yaml"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(SPEC, encoding="utf-8")
        self.data = data
        assert self.up() is Exit.OK

    def up(self) -> Exit:
        """Bring it up, or up again."""
        return up(unchecked(self.path), silent, confirm=lambda _: True).exit_code

    def open(self) -> Cluster:
        """Open it as it was last applied."""
        return open_cluster(str(self.path), running=True)

    def down(self, *names: str, answer: bool = True) -> DownResult:
        """Take it down."""
        return down(self.open(), silent, confirm=lambda _: answer, delete_data=names)


@pytest.fixture
def running(own_places: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    return Running(own_places / "trial", Data(monkeypatch))


def names(items: tuple[Leftover, ...]) -> list[str]:
    return [name for item in items for name in item.storage]


def test_down_keeps_data_on_every_site_and_that_is_no_leftover(running: Running) -> None:
    result = running.down()
    assert (result.exit_code, result.leftovers) == (Exit.OK, ())
    assert names(result.kept) == ["fast", "runs"]
    assert result.removed == {"node": 4}
    assert set(running.data.there) == {"lab", "far"}


def test_it_is_reported_each_time_without_a_second_prompt(running: Running) -> None:
    running.down()
    result = running.down(answer=False)
    assert (result.nothing_there, result.exit_code) == (True, Exit.OK)
    assert names(result.kept) == ["fast", "runs"]


def test_only_the_named_data_goes(running: Running) -> None:
    result = running.down("runs")
    assert (result.exit_code, names(result.kept)) == (Exit.OK, ["fast"])
    assert result.removed == {"bucket": 1, "node": 4}
    assert set(running.data.there) == {"lab"}


def test_data_of_storage_that_the_spec_no_longer_has_can_be_named(running: Running) -> None:
    former = msgspec.structs.replace(MADE["far"], storage=("former",))
    running.data.there["far"] = former
    assert running.down("former").removed == {"bucket": 1, "node": 4}
    assert set(running.data.there) == {"lab"}


def test_data_can_be_named_after_the_cluster_is_down(running: Running) -> None:
    running.down()
    assert running.down("fast").removed == {"file-system": 1}
    assert running.down("runs").kept == ()
    assert running.data.there == {}
    assert running.down().nothing_there


def test_the_answer_no_keeps_it(running: Running) -> None:
    with pytest.raises(LifecycleError) as error:
        running.down("fast", answer=False)
    assert error.value.exit_code is Exit.REFUSED
    assert set(running.data.there) == {"lab", "far"}


@pytest.mark.parametrize(
    ("name", "message"),
    [("fats", 'did you mean "fast"? storage that can be named: fast, runs'),
     ("old", "storage that can be named: fast, runs")],
)  # fmt: skip
def test_a_name_of_nothing_that_was_made_is_refused_before_anything_is_touched(
    running: Running, name: str, message: str
) -> None:
    before = tree(running.path.parent)
    with pytest.raises(LifecycleError) as error:
        running.down("fast", name)
    [found] = error.value.diagnostics
    assert (found.code, error.value.exit_code) == ("GC928", Exit.USAGE)
    assert name in found.summary
    assert found.hint == message
    assert tree(running.path.parent) == before
    assert set(running.data.there) == {"lab", "far"}


def test_data_that_other_kept_data_needs_is_refused(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = msgspec.structs.replace(MADE["far"], kept_data=True)
    monkeypatch.setattr(SimulatedProvider, "refresh", lambda _provider, _context: (needed,))
    with pytest.raises(LifecycleError) as error:
        running.down("runs")
    assert error.value.diagnostics[0].code == "GC929"
    assert set(running.data.there) == {"lab", "far"}


def test_the_passphrase_of_its_stacks_stays_as_long_as_data_does(running: Running) -> None:
    made = running.data.passphrases["lab"]
    assert len(made) >= 43
    running.down()
    assert passphrase.read_passphrase(running.open()) == made
    assert [n for n in tree(running.path.parent) if "munge" in n] == [], "others go at once"
    running.up()
    assert running.data.passphrases["far"] == made
    running.down("fast", "runs")
    assert not [name for name in tree(running.path.parent) if "/secrets/" in name]


def test_a_cluster_with_kept_data_has_not_ended(running: Running) -> None:
    running.down()
    assert [entry.ended for entry in known_clusters()] == [False]
    running.down("fast", "runs")
    assert [entry.ended for entry in known_clusters()] == [True]


def test_what_is_kept_has_the_price_of_its_size_where_the_catalog_has_it(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gcluster.schemas.cost.pools import StorageCost  # noqa: PLC0415  # for this test only

    cost = StorageCost(name="fast", site="lab", type="lustre", gib=4800, usd_per_month=730.0)
    monkeypatch.setattr(
        "gcluster.lifecycle.down.data.storage_costs", lambda _spec, _catalog: [cost]
    )
    fast, runs = running.down().kept
    assert (fast.usd_per_month, fast.usd_per_hour) == (730.0, 1.0)
    assert (runs.usd_per_month, runs.usd_per_hour) == (None, None)


def test_status_of_a_cluster_that_is_down_shows_it(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gcluster.schemas.spec import SimulatedSite  # noqa: PLC0415  # for this test only

    monkeypatch.setattr(SimulatedSite, "is_cloud", True)
    assert read_status(running.open()).kept == ()
    running.down()
    assert names(read_status(running.open()).kept) == ["fast", "runs"]


def test_looking_makes_no_passphrase(running: Running, own_places: Path) -> None:
    del running
    other = own_places / "other" / "cluster.yaml"
    other.parent.mkdir()
    other.write_text(SPEC.replace("trial", "other"), encoding="utf-8")
    cluster = unchecked(other)
    assert {site.context.passphrase() for site in open_sites(cluster)} == {""}
    assert list(other.parent.iterdir()) == [other]


def test_the_passphrase_is_in_no_repr_and_in_no_file_in_the_clear(
    running: Running, own_places: Path
) -> None:
    secret = running.data.passphrases["lab"]
    cluster = running.open()
    contexts = [site.context for site in open_sites(cluster)]
    assert contexts[0].passphrase() == secret
    assert secret not in repr((contexts, cluster, cluster.vault, vars(cluster)))
    events = [repr(event) for event in cluster.events.read()]
    assert len(events) == len([e for e in events if secret not in e]) > 0
    assert Journal(cluster.events).runs()
    everything = tree(own_places)
    assert any("secrets/pulumi/" in name for name in everything)
    assert [name for name, data in everything.items() if secret.encode() in data] == []
