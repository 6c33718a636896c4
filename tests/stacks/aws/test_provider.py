"""The provider contract on AWS: offline parts, bursts with ledger and pinned keys, the stack."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gcluster.schemas.catalog import Catalog
from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.provider import AwsProvider
from gcluster.stacks.provider import Provider, ProviderError, SiteContext, provider_error

from ..engine_double import Engines, Killed  # as pytest imports test folders
from ..ledger_double import RecordingLedger  # as above
from .conftest import BASE, CASES, SITE, Recorded, spec_of
from .test_elastic import TEXT, made

CONSOLE = (CASES / "recorded/console.txt").read_text(encoding="utf-8")


@pytest.fixture
def context(tmp_path: Path) -> SiteContext:
    """Give a cluster with an elastic pool."""
    workdir = tmp_path / "work"
    workdir.mkdir(mode=0o700)
    return SiteContext(
        spec=spec_of(TEXT),
        site=SITE,
        cluster_id="0a1b2c3d",
        workdir=workdir,
        cache=tmp_path,
        ledger=RecordingLedger(),
        emit=lambda _: None,
    )


@pytest.fixture
def provider(api: Api, catalog: Catalog, context: SiteContext, aws_api: Recorded) -> AwsProvider:
    """Give a provider whose site was made: its templates exist, its consoles show keys."""
    from gcluster.stacks.aws.plan.layout import site_plan  # noqa: PLC0415  # for this fixture only

    made(api, site_plan(context.spec, SITE, catalog))
    aws_api.console(CONSOLE)
    aws_api.answer("ec2", "DescribeInstanceTopology", "unauthorized.xml", 403)
    return AwsProvider(catalog, api)


def test_it_is_a_provider() -> None:
    provider: Provider = AwsProvider()
    assert provider.name == "aws"


def test_the_graph_needs_nothing_and_its_keys_are_unique() -> None:
    first = AwsProvider().graph(spec_of(), SITE)
    assert msgspec.json.encode(first) == msgspec.json.encode(AwsProvider().graph(spec_of(), SITE))
    keys = [resource.key for resource in first.resources]
    assert len(keys) == len(set(keys))
    nodes = {r.name: r.pool for r in first.resources if r.kind == "Instance"}
    assert nodes == {
        "demo-east-head": "head",
        "demo-east-train001": "train",
        "demo-east-train002": "train",
    }


def test_without_the_extra_it_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcluster.stacks.pulumi.engine.command.find_spec", lambda _: None)
    for call in (lambda: AwsProvider().graph(spec_of(), SITE), lambda: Api("us-east-1")):
        with pytest.raises(ProviderError) as refused:
            call()
        assert refused.value.diagnostics[0].code == "GC967"
        assert "gcluster[aws]" in refused.value.diagnostics[0].hint


def test_planned_hosts_are_those_of_the_spec() -> None:
    hosts = AwsProvider().planned_hosts(spec_of(BASE), SITE)
    assert [(h.name, h.pool, h.role, h.address, h.ssh.user) for h in hosts] == [
        ("head", "head", "controller", "", "ubuntu"),
        ("train001", "train", "compute", "", "ubuntu"),
        ("train002", "train", "compute", "", "ubuntu"),
    ]


def test_a_burst_is_intended_before_and_recorded_after_and_has_pinned_keys(
    provider: AwsProvider, context: SiteContext
) -> None:
    grown = provider.grow(context, "train", ["train001", "train002"], token="intent-7")  # noqa: S106
    assert [host.name for host in grown.hosts] == ["train001", "train002"]
    assert all(host.address and host.ssh.host_keys for host in grown.hosts)
    ledger = context.ledger
    assert isinstance(ledger, RecordingLedger)
    assert [verb for verb, _, _ in ledger.entries] == ["intend", "intend", "created", "created"]
    assert ledger.open == {}
    ids = {item.provider_id for item in provider.sweep(context) if item.kind == "instance"}
    assert set(ledger.existing.values()) == ids


def test_growing_again_changes_neither_the_cloud_nor_the_ledger(
    provider: AwsProvider, context: SiteContext
) -> None:
    first = provider.grow(context, "train", ["train001"], token="intent-7")  # noqa: S106
    assert isinstance(context.ledger, RecordingLedger)
    reported = list(context.ledger.entries)
    assert provider.grow(context, "train", ["train001"], token="intent-7") == first  # noqa: S106
    assert context.ledger.entries == reported


def test_shrinking_strikes_the_nodes_out(provider: AwsProvider, context: SiteContext) -> None:
    provider.grow(context, "train", ["train001", "train002"], token="intent-7")  # noqa: S106
    provider.shrink(context, ["train001"])
    assert [host.name for host in provider.hosts(context)] == ["train002"]
    assert isinstance(context.ledger, RecordingLedger)
    assert list(context.ledger.existing) == ["east/node/train002"]


def test_a_burst_that_fails_closes_its_intents(
    provider: AwsProvider, context: SiteContext, aws_api: Recorded
) -> None:
    aws_api.answer("ec2", "CreateFleet", "unauthorized.xml", 403)
    with pytest.raises(ProviderError) as refused:
        provider.grow(context, "train", ["train001"], token="intent-7")  # noqa: S106
    assert refused.value.diagnostics[0].code == "GC962"
    assert isinstance(context.ledger, RecordingLedger)
    assert context.ledger.open == {}
    assert context.ledger.existing == {}


def test_what_a_failed_burst_leaves_keeps_its_intent_and_the_next_call_continues(
    provider: AwsProvider, context: SiteContext, aws_api: Recorded
) -> None:
    aws_api.answer("ec2", "CreateTags", "unauthorized.xml", 403)
    with pytest.raises(ProviderError):
        provider.grow(context, "train", ["train001"], token="intent-7")  # noqa: S106
    assert isinstance(context.ledger, RecordingLedger)
    assert list(context.ledger.open) == ["east/node/train001"]
    aws_api.only_if = lambda body: "Action=CreateTags" not in body  # the right was given
    provider.grow(context, "train", ["train001"], token="intent-7")  # noqa: S106
    assert context.ledger.open == {}


def test_a_node_without_a_host_key_on_its_console_is_silent_and_not_waited_for_again(
    provider: AwsProvider,
    context: SiteContext,
    aws_api: Recorded,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gcluster.stacks.aws.session.Session.boot_limit_s", 0.02)
    aws_api.console("[    0.000000] Linux version 6.8.0\n[    1.2] Kernel panic - not syncing")
    [host] = provider.grow(context, "train", ["train001"], token="intent-7").hosts  # noqa: S106
    assert "showed no host key through AWS" in host.silent
    assert host.last_lines[-1].endswith("Kernel panic - not syncing")
    assert host.ssh.host_keys == ()
    monkeypatch.setattr("gcluster.stacks.aws.session.Session.boot_limit_s", 3600.0)
    [again] = [h for h in provider.hosts(context) if h.name == "train001"]
    assert again.silent == host.silent


def test_a_login_key_without_its_public_half_is_named(
    context: SiteContext, catalog: Catalog, tmp_path: Path
) -> None:
    from gcluster.stacks.aws.session import Session  # noqa: PLC0415  # for this test only

    text = BASE.replace("    zone_id", f"    ssh: {{key: {tmp_path}/mine}}\n    zone_id")
    named = msgspec.structs.replace(context, spec=spec_of(text))
    with pytest.raises(ProviderError) as refused:
        Session(named, catalog).authorized_key()
    assert refused.value.diagnostics[0].code == "GC968"
    assert "ssh-keygen -y" in refused.value.diagnostics[0].hint


@pytest.mark.engine
def test_the_program_is_made_and_removed_by_the_engine(
    moto: str, catalog: Catalog, context: SiteContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site without a fabric: moto has no placement groups."""
    from gcluster.stacks.pulumi.engine.command import find_roots  # noqa: PLC0415  # for this test only

    if not find_roots():
        pytest.skip("the engine, the `pulumi` command, is not installed on this machine")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    text = BASE.replace("p5.48xlarge", "m7i.xlarge").replace(
        "    zone_id", "    image: ami-1e749f67\n    zone_id"
    )
    text = text.replace(
        "scheduler:",
        "storage:\n  runs: {type: object, mount: /r, site: east, bucket: 's3://acme-runs', "
        "create: true}\nscheduler:",
    )
    plain = msgspec.structs.replace(
        context,
        spec=spec_of(text),
        state=f"file://{context.workdir}/state",
        passphrase=lambda: "of a test",
    )
    provider = AwsProvider(catalog, Api("us-east-1", endpoint_url=moto))
    provider.apply(plain)
    assert {change.effect for change in provider.preview(plain)} == {"keep"}
    provider.destroy(plain)
    [kept] = provider.sweep(plain)
    assert (kept.storage, kept.kept_data) == (("runs",), True)
    all_of_it = msgspec.structs.replace(plain, delete_data=frozenset({"runs"}))
    provider.destroy(all_of_it)
    assert provider.sweep(all_of_it) == ()


def test_a_killed_apply_leaves_one_intent_open_and_the_next_settles_it(
    provider: AwsProvider, context: SiteContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = Engines()
    monkeypatch.setattr("gcluster.stacks.pulumi.engine.automation.Engine", engines)
    state = f"file://{context.workdir}/state"
    site = msgspec.structs.replace(context, state=state, passphrase=lambda: "of a test")
    ledger = context.ledger
    assert isinstance(ledger, RecordingLedger)
    engines.dies_at = "up"
    with pytest.raises(Killed):
        provider.apply(site)
    assert list(ledger.open) == [f"{SITE}/stack/{SITE}"]
    provider.apply(site)
    assert ledger.open == {}
    assert list(ledger.existing) == [f"{SITE}/stack/{SITE}"]
    assert engines.calls == ["export", "settle", "refresh", "up"] * 2
    assert {intent for verb, _, intent in ledger.entries if verb == "intend"} == {"intent-0"}
    provider.destroy(site)
    assert ledger.existing == {}


def test_without_a_stack_all_is_to_be_created_and_no_engine_is_called(
    provider: AwsProvider, context: SiteContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = Engines()
    monkeypatch.setattr("gcluster.stacks.pulumi.engine.automation.Engine", engines)
    changes = provider.preview(context)
    assert {change.effect for change in changes} == {"create"}
    assert [c.resource for c in changes] == list(provider.graph(context.spec, SITE).resources)
    assert provider.cancel(context) is False
    assert engines.calls == []
    made = msgspec.structs.replace(context, state="file:///s", passphrase=lambda: "of a test")
    assert provider.cancel(made) is True
    assert engines.calls == ["cancel"]


def test_a_burst_that_was_cut_off_keeps_its_intents(
    provider: AwsProvider, context: SiteContext
) -> None:
    requested = provider._session(context).api.call  # noqa: SLF001  # what is cut off

    def cut(answer: type, service: str, operation: str, **more: object) -> object:
        if operation == "create_fleet":
            raise provider_error("GC966", "AWS can't be reached")
        return requested(answer, service, operation, **more)

    context_ledger = context.ledger
    assert isinstance(context_ledger, RecordingLedger)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Api, "call", lambda _api, *a, **k: cut(*a, **k))
        with pytest.raises(ProviderError):
            provider.grow(context, "train", ["train001"], token="intent-7")  # noqa: S106
    assert list(context_ledger.open) == [f"{SITE}/node/train001"]
