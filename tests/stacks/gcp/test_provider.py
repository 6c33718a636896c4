"""The provider contract, as far as it goes without the engine: offline, elastic, and its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import requests
from gcp_cases import machines, site_of, spec_of
from google_double import Google

from gcluster.stacks.gcp.api import SERVICES, Answer, Api, addresses
from gcluster.stacks.gcp.provider import GcpProvider
from gcluster.stacks.provider import Provider, ProviderError, SiteContext, provider_error

from ..ledger_double import RecordingLedger  # tests are no installed package

KEYS = [{"namespace": "hostkeys", "key": "ssh-ed25519", "value": "AAAAC3Nza"}]


@pytest.fixture
def google() -> Iterator[Google]:
    double = Google("gib")
    yield double
    double.close()


def context_of(folder: Path, book: RecordingLedger, machine: str = "a3-ultragpu-8g") -> SiteContext:
    spec = spec_of(machine)
    return SiteContext(
        spec=spec,
        site=site_of(spec),
        cluster_id="c1",
        workdir=folder,
        cache=folder,
        ledger=book,
        emit=lambda _: None,
    )


def test_it_is_a_provider() -> None:
    provider: Provider = GcpProvider()
    assert provider.name == "gcp"


@pytest.mark.parametrize("machine", machines())
def test_the_graph_is_offline_the_same_twice_and_its_keys_are_unique(machine: str) -> None:
    spec = spec_of(machine)
    site = site_of(spec)
    graph = GcpProvider().graph(spec, site)
    assert msgspec.json.encode(graph) == msgspec.json.encode(GcpProvider().graph(spec, site))
    keys = [resource.key for resource in graph.resources]
    assert len(keys) == len(set(keys))
    assert "startup-script" not in str([resource.properties for resource in graph.resources])


def test_planned_hosts_are_those_that_are_always_there() -> None:
    spec = spec_of("a3-ultragpu-8g")
    hosts = GcpProvider().planned_hosts(spec, "west")
    assert [(host.name, host.machine) for host in hosts] == [
        ("head", "n2-standard-8"),
        ("train001", "a3-ultragpu-8g"),
    ]
    assert {host.address for host in hosts} == {""}


def test_without_the_extra_the_command_that_installs_it_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "gcluster.stacks.pulumi.engine.command._is_installed", lambda name: name != "pulumi_gcp"
    )
    with pytest.raises(ProviderError) as caught:
        GcpProvider().graph(spec_of("a3-highgpu-8g"), "east")
    [found] = caught.value.diagnostics
    assert found.code == "GC967"
    assert "pip install 'gcluster[gcp]'" in found.hint


def test_growing_intends_before_it_creates_and_pins_the_keys(
    google: Google, tmp_path: Path
) -> None:
    book = RecordingLedger()
    google.keys = {f"gib-west-train00{n}": KEYS for n in (2, 3)}
    provider, context = GcpProvider(api=google.api()), context_of(tmp_path, book)
    names = ["train002", "train003"]
    grown = provider.grow(context, "train", names, token="burst-1")  # noqa: S106  # no secret
    assert [host.name for host in grown.hosts] == names
    assert {host.ssh.host_keys for host in grown.hosts} == {("ssh-ed25519 AAAAC3Nza",)}
    places = ["west/node/train002", "west/node/train003"]
    assert [(verb, place) for verb, place, _ in book.entries] == [
        *(("intend", place) for place in places),
        *(("created", place) for place in places),
    ]
    provider.grow(context, "train", names, token="burst-1")  # noqa: S106  # no secret
    assert len(book.entries) == 4, "what exists is not intended again"
    provider.shrink(context, names)
    assert book.count("deleted") == 2
    assert book.existing == {}


def test_a_failed_growth_is_in_the_ledger(google: Google, tmp_path: Path) -> None:
    book = RecordingLedger()
    google.full |= {"on-demand-us-central1-b", "spot-us-central1-b"}
    provider = GcpProvider(api=google.api())
    with pytest.raises(ProviderError):
        provider.grow(
            context_of(tmp_path, book),
            "train",
            ["train002"],
            token="burst-1",  # noqa: S106  # no secret
        )
    assert [verb for verb, _, _ in book.entries] == ["intend", "failed"]
    assert book.open == {}


@pytest.mark.parametrize("broken", ["cut off", "left"])
def test_a_growth_whose_end_is_not_known_keeps_its_intents(
    google: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Cut off on the way, or refused while a machine of the burst is there already."""
    book = RecordingLedger()
    if broken == "left":
        labels = {"gcluster-cluster": "gib", "gcluster-site": "west", "gcluster-pool": "train"}
        google.add("gib-west-x", "us-central1-b", labels | {"gcluster-token": "burst-1"})
    code = "GC966" if broken == "cut off" else "GC962"

    def refuse(*_: object, **__: object) -> None:
        raise provider_error(code, "refused")

    monkeypatch.setattr("gcluster.stacks.gcp.elastic._insert", refuse)
    provider, context = GcpProvider(api=google.api()), context_of(tmp_path, book)
    with pytest.raises(ProviderError):
        provider.grow(context, "train", ["train002"], token="burst-1")  # noqa: S106  # no secret
    assert list(book.open) == ["west/node/train002"]


def test_a_machine_that_shows_no_key_is_never_logged_in_to(
    google: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcluster.stacks.gcp.session.Session.boot_limit_s", 0.0)
    labels = {"gcluster-cluster": "gib", "gcluster-site": "west", "gcluster-pool": "head"}
    google.add("gib-west-head", "us-central1-b", labels | {"gcluster-host": "head"})
    [head] = GcpProvider(api=google.api()).hosts(context_of(tmp_path, RecordingLedger()))
    assert head.name == "head"
    assert "showed no host key through Google" in head.silent
    assert head.ssh.host_keys == ()


class _Anything(Answer, frozen=True):
    pass


def test_google_is_queried_where_the_engines_provider_queries_it(
    google: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    google.add("demo", "us-central1-a", {})
    monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", f"{google.root}/compute/")
    api = Api("acme-ml", login=requests.Session())
    assert api.call(_Anything, f"{api.in_project()}/aggregated/instances") == _Anything()
    assert addresses()["iam"] == SERVICES["iam"]
