"""What `destroy` takes and leaves on each cloud: the real programs, the engine a double."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.aws.session import Session as AwsSession
from gcluster.stacks.azure.plan.types import LiveState
from gcluster.stacks.azure.program.site import program as azure_program
from gcluster.stacks.azure.session import Session as AzureSession
from gcluster.stacks.gcp.program.site import program as gcp_program
from gcluster.stacks.gcp.session import Session as GcpSession
from gcluster.stacks.provider import Leftover, SiteContext
from gcluster.stacks.pulumi.engine.automation import Engine
from gcluster.stacks.pulumi.session import SiteSession
from gcluster.stacks.registry import provider

from .engine_double import Engines, Killed
from .ledger_double import RecordingLedger

CATALOG = load_catalog()
SITES = {
    "aws": "provider: aws, region: us-east-1, zone_id: use1-az4",
    "gcp": "provider: gcp, project: acme-ml, region: us-central1, zone: us-central1-a",
    "azure": "provider: azure, subscription: 0b1f6471-1bf0-4dda-aec3-cb9272f09590, region: eastus,"
    ' zone: "1"',
}
MACHINES = {
    "aws": ("m7i.4xlarge", "p5.48xlarge"),
    "gcp": ("n2-standard-8", "a3-highgpu-8g"),
    "azure": ("Standard_D16s_v5", "Standard_ND96isr_H100_v5"),
}
BUCKETS = {
    "aws": ("s3://acme-models", "s3://acme-runs"),
    "gcp": ("gs://acme-models", "gs://acme-runs"),
    "azure": ("az://acmedata/models", "az://acmedata/runs"),
}
SIZES = {
    "aws": "capacity: 4800 GiB, throughput: 250 MB/s/TiB",
    "gcp": "capacity: 36000 GiB, throughput: 500 MB/s/TiB",
    "azure": "capacity: 16 TiB, throughput: 125 MB/s/TiB",
}
FILE_SYSTEM = {"aws": "LustreFileSystem", "gcp": "Instance", "azure": "AmlFilesystem"}
NODE = {"aws": "Instance", "gcp": "InstanceFromTemplate", "azure": "VirtualMachineScaleSet"}
NETWORK = {"aws": "Vpc", "gcp": "Network", "azure": "VirtualNetwork"}
PLANE = {"aws": "eks", "gcp": "gke", "azure": "aks"}
ALL = {"fast", "models", "runs"}


def spec_of(cloud: str, *, lustre: bool = True, plane: bool = False) -> ClusterSpec:
    head, train = MACHINES[cloud]
    models, runs = BUCKETS[cloud]
    fast = f"  fast: {{type: lustre, mount: /fast, site: here, {SIZES[cloud]}}}\n"
    text = (
        "apiVersion: gcluster/v1\nname: demo\nscheduler: {type: slurm}\n"
        f"sites:\n  here: {{{SITES[cloud]}}}\n"
        f"pools:\n  head: {{site: here, role: controller, machine: {head}}}\n"
        f"  train: {{site: here, machine: {train}, count: 2}}\n"
        f"storage:\n{fast if lustre else ''}"
        f"  models: {{type: object, mount: /m, site: here, bucket: '{models}', create: true}}\n"
        f"  runs: {{type: object, mount: /r, site: here, bucket: '{runs}', create: true}}\n"
    )
    if plane:
        text = text.replace(f"  head: {{site: here, role: controller, machine: {head}}}\n", "")
        its = f"{{type: kubernetes, control_plane: {PLANE[cloud]}, gpu: {{driver: container}}}}"
        text = text.replace("{type: slurm}", its)
    loaded = load_text(text, file="spec.yaml", check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


class GcpOffline(GcpSession):
    """A session whose program doesn't depend on machines that run."""

    def engine(self, total: int = 0) -> Engine:
        """Return the stack with the program as it is at first."""
        run = gcp_program(self._context.spec, "here", CATALOG, login_key=self.authorized_key())
        return self._stack(run, total)


class AzureOffline(AzureSession):
    """A session whose program doesn't depend on machines that run."""

    def engine(self, total: int = 0) -> Engine:
        """Return the stack with the program as it is at first."""
        live_state = LiveState(public_key=self.authorized_key(), month="2026-11-01", live={})
        return self._stack(azure_program(self._context.spec, "here", CATALOG, live_state), total)


SESSIONS: dict[str, type[SiteSession]] = {
    "aws": AwsSession, "gcp": GcpOffline, "azure": AzureOffline,
}  # fmt: skip
Open = Callable[..., SiteSession]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    double = Engines()
    monkeypatch.setattr("gcluster.stacks.pulumi.engine.automation.Engine", double)
    return double


@pytest.fixture(params=sorted(SITES))
def cloud(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(cloud: str, tmp_path: Path, engines: Engines) -> Open:
    """Give what opens the site again, as each run of gcluster does."""
    del engines

    def open_it(
        *delete: str,
        passphrase: str = "a secret",  # noqa: S107  # a test's
        lustre: bool = True,
        plane: bool = False,
    ) -> SiteSession:
        context = SiteContext(
            spec=spec_of(cloud, lustre=lustre, plane=plane),
            site="here",
            cluster_id="0a1b2c3d",
            workdir=tmp_path,
            cache=tmp_path,
            ledger=RecordingLedger(),
            emit=lambda _: None,
            state=f"file://{tmp_path}/state",
            passphrase=lambda: passphrase,
            delete_data=frozenset(delete),
        )
        return SESSIONS[cloud](context, CATALOG)

    return open_it


def test_up_reads_back_what_is_there_first(opened: Open, engines: Engines) -> None:
    opened().bring_up(0)
    assert [call for call in engines.calls if call not in {"export", "settle"}] == ["refresh", "up"]
    assert engines.passphrases == {"a secret"}


def test_down_takes_the_nodes_and_leaves_data_with_what_it_is_in(
    opened: Open, engines: Engines, cloud: str
) -> None:
    opened().bring_up(0)
    assert {NODE[cloud], FILE_SYSTEM[cloud], NETWORK[cloud]} <= engines.kinds()
    assert opened().take_down() is False
    assert NODE[cloud] not in engines.kinds()
    assert {FILE_SYSTEM[cloud], NETWORK[cloud]} <= engines.kinds()
    [stack] = engines.stacks.values()
    assert {e["urn"] for e in stack if e["id"]} == set(engines.cloud), "nothing is forgotten"


def test_only_the_data_that_was_named_goes(opened: Open, engines: Engines, cloud: str) -> None:
    opened().bring_up(0)
    opened("models").take_down()
    assert any(urn.endswith("-runs") for urn in engines.cloud)
    assert not any(urn.endswith("-models") for urn in engines.cloud)
    assert FILE_SYSTEM[cloud] in engines.kinds()


def test_with_all_data_named_nothing_is_left_and_the_stack_is_gone(
    opened: Open, engines: Engines
) -> None:
    opened().bring_up(0)
    session = opened(*ALL)
    assert session.take_down() is True
    assert engines.cloud == {}
    assert engines.stacks == {}


def test_data_can_be_named_later(opened: Open, engines: Engines) -> None:
    opened().bring_up(0)
    opened().take_down()
    opened("fast").take_down()
    assert engines.cloud
    assert opened(*ALL).take_down() is True
    assert engines.cloud == {}


def test_killed_before_it_destroyed_a_plain_down_keeps_the_data(
    opened: Open, engines: Engines, cloud: str
) -> None:
    opened().bring_up(0)
    engines.dies_at = "destroy"
    with pytest.raises(Killed):
        opened(*ALL).take_down()
    assert opened().take_down() is False
    assert FILE_SYSTEM[cloud] in engines.kinds()


def test_a_control_plane_is_reported_no_more_once_only_data_is_left(
    opened: Open, engines: Engines
) -> None:
    answer = {"name": "demo", "endpoint": "https://192.0.2.7", "authority": "Q0E="}
    engines.outputs = {"control-plane": answer}
    opened(plane=True).bring_up(0)
    there = opened(plane=True).control_plane("here")
    assert there is not None
    assert there.endpoint == "https://192.0.2.7"
    assert opened(plane=True).take_down() is False
    assert engines.cloud
    assert opened(plane=True).control_plane("here") is None
    assert opened(plane=True, passphrase="").control_plane("here") is None


def test_without_a_stack_no_engine_is_queried(opened: Open, engines: Engines) -> None:
    session = opened(passphrase="")
    assert session.take_down() is True
    assert session.cancel() is False
    assert session.mark_protected((Leftover(kind="x", name="x", provider_id="x", kept_data=True),))
    assert engines.calls == []


def test_every_protected_resource_of_the_program_has_storage_that_needs_it(opened: Open) -> None:
    session = opened()
    session.bring_up(0)
    owned = session.owners()
    assert set().union(*owned.values()) == ALL
    assert all(owned.values())


def test_what_was_found_is_reported_apart_by_what_the_stack_protects(
    opened: Open, engines: Engines, cloud: str
) -> None:
    opened().bring_up(0)
    ids = {urn.split("::")[2].rpartition(":")[2]: made for urn, made in engines.cloud.items()}
    kinds = (FILE_SYSTEM[cloud], NETWORK[cloud], NODE[cloud])
    found = tuple(
        Leftover(kind=kind, name=kind, provider_id=ids[kind], kept_data=kind == FILE_SYSTEM[cloud])
        for kind in kinds
    )
    answer = opened().mark_protected(found)
    assert [item.kept_data for item in answer] == [True, True, False]
    assert [item.storage for item in answer] == [("fast",), (), ()]
    going = opened(*ALL).mark_protected(found)
    assert [item.kept_data for item in going] == [False, False, False]
    assert going[0].storage == ("fast",)
    strange = (msgspec.structs.replace(found[0], name="x", provider_id="x"),)
    assert opened().mark_protected(strange) == strange, "what the stack doesn't know stays as found"


def test_what_is_in_the_stack_is_recorded_and_nothing_else_is(
    opened: Open, engines: Engines, cloud: str
) -> None:
    opened().bring_up(0)
    ids = {urn.split("::")[2].rpartition(":")[2]: made for urn, made in engines.cloud.items()}
    node = Leftover(kind="node", name="x", provider_id=ids[NODE[cloud]])
    stray = Leftover(kind="node", name="y", provider_id="i-made-by-hand")
    assert opened().tracked_ids((node, stray)) == {node.provider_id}
    assert opened(passphrase="").tracked_ids((node, stray)) == frozenset()


def test_one_machine_is_recreated_after_the_cloud_was_read_back(
    opened: Open, engines: Engines, cloud: str
) -> None:
    opened().bring_up(0)
    (urn, *_) = (u for u in engines.cloud if u.split("::")[2].endswith(f":{NODE[cloud]}"))
    engines.calls.clear()
    opened().recreate(0, [urn.rpartition("::")[2]])
    assert engines.calls[-3:] == ["refresh", "export", "up"]
    assert engines.again == [urn]


def test_machines_are_reported_by_the_names_of_their_resources(
    opened: Open, engines: Engines, cloud: str
) -> None:
    assert opened(passphrase="").machine_ids() == {}
    assert engines.calls == []
    opened().bring_up(0)
    urn = next(u for u in engines.cloud if u.split("::")[2].endswith(f":{NODE[cloud]}"))
    assert opened().machine_ids()[urn.rpartition("::")[2]] == engines.cloud[urn]


def test_looking_back_makes_no_stack_and_changes_none(opened: Open, engines: Engines) -> None:
    assert opened(passphrase="").detect_drift() == ()
    assert engines.calls == []
    opened().bring_up(0)
    engines.calls.clear()
    assert opened().detect_drift() == ()
    assert engines.calls == ["look back"]


def test_a_machine_of_its_own_can_be_had_alone_and_one_of_a_scale_set_can_not(cloud: str) -> None:
    spec = spec_of(cloud)
    own = provider(cloud, CATALOG)._own_machines(spec, "here")  # type: ignore[attr-defined]  # noqa: SLF001  # a cloud's
    assert "head" in own
    assert ("train001" in own) is (cloud != "azure")
