"""Every cloud program goes through the real Automation API; the command behind it is a double.

The double (tests/pulumi_double) makes things in an invented cloud. What this shows: the programs
run over gRPC as the engine runs them, with ids and outputs of the real form, twice without a
change, and what was made goes again. What it does not show: that a cloud takes these inputs.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pulumi
import pytest
from pulumi.automation import PulumiCommand
from tests.pulumi_double.install import PulumiDouble
from tests.pulumi_double.sites import CloudSite, cloud_sites

from gcluster.stacks.provider import ProviderError, ResourceChange
from gcluster.stacks.pulumi.engine.automation import Engine
from gcluster.stacks.pulumi.engine.checkpoint import MACHINES, guarded, resources
from gcluster.stacks.pulumi.engine.command import StackPlace

pytestmark = pytest.mark.filterwarnings(
    # of the SDK, about programs whose engine was killed
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::DeprecationWarning:pulumi_aws",
)
_ALL = os.environ.get("GCLUSTER_ENGINE_DOUBLE") == "all"
_SHORT = {
    "example-aws-p5-slurm-east", "example-azure-ndv5-slurm-east",
    "example-gcp-a3-mega-slurm-central", "example-oci-h100-slurm-ashburn",
}  # fmt: skip
"""What runs in the unit stage: one site of each cloud; `make test-engine-double` runs all."""
SITES = [site for site in cloud_sites() if _ALL or site.id in _SHORT]


class Stacks:
    """Opens stacks on one installation of the double."""

    def __init__(self, folder: Path) -> None:
        """Install it below the folder."""
        self.folder = folder
        self.double = PulumiDouble(folder / "pulumi")

    def open(self, program: Callable[[], None], site: str = "east") -> Engine:
        """Open the stack, as a fresh process would."""
        place = StackPlace(
            cluster="demo",
            site=site,
            state=f"file://{self.folder}/state",
            workdir=self.folder / "work",
        )
        return Engine(
            place,
            program,
            passphrase=lambda: "correct horse",
            emit=lambda _: None,
            command=PulumiCommand(root=str(self.double.root)),
        )


@pytest.fixture
def stacks(tmp_path: Path) -> Iterator[Stacks]:
    yield Stacks(tmp_path)
    gc.collect()  # what the SDK says about programs without their engine is said here


def effects(changes: Iterable[ResourceChange]) -> Counter[str]:
    return Counter(change.effect for change in changes)


def keys(stacks: Stacks) -> set[str]:
    """Return type and name of all that exists in the cloud."""
    return {thing["urn"].split("::", 2)[2] for thing in stacks.double.things().values()}


def test_the_double_reports_that_it_is_one(stacks: Stacks) -> None:
    assert "double" in str(PulumiCommand(root=str(stacks.double.root)).version)
    stacks.open(lambda: None).up()
    assert '"double": true' in (stacks.double.root / "pulumi-double.log").read_text()


@pytest.mark.parametrize("site", SITES, ids=[site.id for site in SITES])
def test_a_site_is_previewed_made_found_unchanged_and_removed(
    site: CloudSite, stacks: Stacks
) -> None:
    engine = stacks.open(site.program(), site.name)
    recorded = {r.urn.split("::", 2)[2] for r in site.recorded().resources if r.custom}
    planned = effects(engine.preview())
    assert planned == {"create": len(recorded)}
    assert stacks.double.things() == {}, "a preview makes nothing"
    assert effects(engine.up()) == planned
    assert keys(stacks) == {key for key in recorded if not key.startswith("pulumi:providers:")}
    again = stacks.open(site.program(), site.name)
    unchanged = {"keep": len(recorded)}
    assert effects(again.refresh()) == effects(again.up()) == unchanged
    assert effects(again.preview()) == unchanged
    again.change(lambda e: guarded(e, {r.key: False for r in resources(e) if r.protect}))
    assert effects(again.destroy()) == {"delete": len(recorded)}
    assert keys(stacks) == {  # what can't be returned: a capacity block is bought for its time
        r.urn.split("::", 2)[2] for r in site.recorded().resources
        if r.options.retain_on_delete and not r.options.protect
    }  # fmt: skip
    assert resources(again.export()) == ()
    again.remove()


def test_machines_are_reported_from_what_is_called_like_them() -> None:
    types = {r.type for site in cloud_sites() for r in site.recorded().resources}
    machines = {t for t in types if t.rpartition(":")[2].startswith(("Instance", "VirtualMachine"))}
    assert types >= MACHINES
    assert {t.rpartition(":")[2] for t in machines - MACHINES} == {
        "Instance",  # Google's Lustre
        "InstanceConfiguration", "InstanceConnectEndpoint", "InstanceGroup", "InstanceGroupManager",
        "InstanceProfile", "InstanceTemplate",
    }  # fmt: skip


def aws_site() -> CloudSite:
    return next(site for site in cloud_sites() if site.id == "example-aws-p5-slurm-east")


@pytest.mark.parametrize("kills", [10 if _ALL else 2])
def test_up_and_destroy_that_are_killed_over_and_over_come_through(
    kills: int, stacks: Stacks
) -> None:
    site = aws_site()
    expected = len([r for r in site.recorded().resources if r.custom and r.parent])
    for number in range(kills):
        stacks.double.plant({"number": 4 + number * 5, "do": "kill"})
        engine = stacks.open(site.program(), site.name)
        if number:
            engine.refresh()
        with pytest.raises(ProviderError):
            engine.up()
    stacks.open(site.program(), site.name).up()
    assert len(stacks.double.things()) == expected
    for number in range(kills):
        stacks.double.plant({"moment": "deleted", "number": 1 + number % 3, "do": "kill"})
        with pytest.raises(ProviderError):
            stacks.open(site.program(), site.name).destroy(keep_protected=False)
    engine = stacks.open(site.program(), site.name)
    engine.refresh()
    engine.change(lambda e: guarded(e, {r.key: False for r in resources(e) if r.protect}))
    engine.destroy()
    assert stacks.double.things() == {}
    assert len(stacks.double.struck()) == 2 * kills


def test_a_run_killed_as_it_makes_the_stack_leaves_a_lock_that_the_next_one_frees(
    stacks: Stacks,
) -> None:
    stacks.double.plant({"moment": "locked", "do": "kill"})
    with pytest.raises(ProviderError):
        stacks.open(lambda: None).refresh()
    locks = stacks.folder / "state" / "pulumi" / ".pulumi" / "locks"
    assert len(list(locks.rglob("*.json"))) == 1
    site = aws_site()
    engine = stacks.open(site.program(), site.name)
    engine.refresh()
    engine.up()
    assert list(locks.rglob("*.json")) == []
    kept = stacks.folder / "state" / "pulumi" / ".pulumi" / "stacks"
    assert [file.name for file in kept.rglob("*.json")] == ["east.json"]
    assert set(effects(engine.preview())) == {"keep"}


def test_the_lock_of_another_machine_that_makes_the_stack_is_left(stacks: Stacks) -> None:
    stacks.double.plant({"moment": "locked", "do": "kill"})
    with pytest.raises(ProviderError):
        stacks.open(lambda: None).refresh()
    [lock] = (stacks.folder / "state" / "pulumi" / ".pulumi" / "locks").rglob("*.json")
    lock.write_text(json.dumps({**json.loads(lock.read_text()), "hostname": "elsewhere"}))
    with pytest.raises(ProviderError) as refused:
        stacks.open(lambda: None).refresh()
    assert refused.value.diagnostics[0].code == "GC964"
    assert lock.exists()


def test_what_was_made_but_not_kept_is_dropped_and_left_to_the_sweep(stacks: Stacks) -> None:
    site = aws_site()
    stacks.double.plant({"moment": "made", "match": "InstanceProfile", "do": "kill"})
    with pytest.raises(ProviderError):
        stacks.open(site.program(), site.name).up()
    [orphan] = [t for t in stacks.double.things().values() if "InstanceProfile" in t["type"]]
    engine = stacks.open(site.program(), site.name)
    assert json.loads(engine.export())["deployment"]["pending_operations"]
    engine.refresh()
    assert not json.loads(engine.export())["deployment"]["pending_operations"]
    engine.up()
    profiles = [t for t in stacks.double.things().values() if "InstanceProfile" in t["type"]]
    assert len(profiles) == 2
    assert orphan in profiles


def small() -> None:
    """Make a network, data in it that is protected, and two things that need the network."""
    from pulumi_random import RandomPet  # noqa: PLC0415  # its import is only needed here

    network = RandomPet("network")
    kept = pulumi.ResourceOptions(protect=True, retain_on_delete=True, depends_on=[network])
    RandomPet("data", opts=kept)
    first = RandomPet("first", opts=pulumi.ResourceOptions(depends_on=[network]))
    RandomPet("second", prefix=first.id)
    pulumi.export("network", network.id)


def test_a_failed_resource_is_named_its_dependents_wait_and_the_others_are_kept(
    stacks: Stacks,
) -> None:
    stacks.double.plant({"match": "first", "do": "fail", "message": "InsufficientInstanceCapacity"})
    with pytest.raises(ProviderError) as failure:
        stacks.open(small).up()
    assert [f.summary.partition(":")[0] for f in failure.value.diagnostics] == ["RandomPet first"]
    assert set(failure.value.lacking) == {"first"}
    assert {t["urn"].rpartition("::")[2] for t in stacks.double.things().values()} == {
        "network", "data",
    }  # fmt: skip
    assert effects(stacks.open(small).up()) == {"keep": 2, "create": 2}


def test_protected_data_and_what_it_is_in_outlive_a_destroy(stacks: Stacks) -> None:
    stacks.open(small).up()
    with pytest.raises(ProviderError) as failure:
        stacks.open(small).destroy(keep_protected=False)
    assert "is protected" in failure.value.diagnostics[0].detail
    stacks.open(small).up()
    assert {c.resource.name for c in stacks.open(small).destroy()} == {"first", "second"}
    left = {t["urn"].rpartition("::")[2] for t in stacks.double.things().values()}
    assert left == {"network", "data"}
    assert set(stacks.open(small).outputs()) == {"network"}


def test_what_the_program_leaves_out_goes_and_what_it_has_to_ignore_stays(stacks: Stacks) -> None:
    def program(prefix: str, *, extra: bool) -> Callable[[], None]:
        def run() -> None:
            from pulumi_random import RandomPet  # noqa: PLC0415  # as above

            blind = pulumi.ResourceOptions(ignore_changes=["prefix"])
            again = pulumi.ResourceOptions(replace_on_changes=["prefix"])
            RandomPet("blind", prefix=prefix, opts=blind)
            RandomPet("again", prefix=prefix, opts=again)
            RandomPet("plain", prefix=prefix)
            if extra:
                RandomPet("extra")

        return run

    stacks.open(program("a", extra=True)).up()
    changes = {c.resource.name: c.effect for c in stacks.open(program("b", extra=False)).up()}
    assert changes == {"blind": "keep", "again": "replace", "plain": "update", "extra": "delete"}
    assert len(stacks.double.things()) == 3


def test_a_command_that_hangs_can_be_ended_and_the_next_run_continues(stacks: Stacks) -> None:
    stacks.double.plant({"match": "second", "do": "stall"})
    failures: list[ProviderError] = []

    def run() -> None:
        try:
            stacks.open(small).up()
        except ProviderError as error:
            failures.append(error)

    waiting = threading.Thread(target=run)
    waiting.start()
    while not stacks.double.struck():
        time.sleep(0.05)
    log = (stacks.double.root / "pulumi-double.log").read_text().splitlines()
    os.kill(json.loads(log[-1])["pid"], signal.SIGKILL)
    waiting.join()
    assert failures
    assert effects(stacks.open(small).up())["create"] == 1


def test_the_wrong_passphrase_is_refused_and_no_secret_is_kept_in_clear(stacks: Stacks) -> None:
    def program() -> None:
        pulumi.export("hidden", pulumi.Output.secret("planted-9f2c"))

    stacks.open(program).up()
    assert stacks.open(program).outputs() == {}
    for file in stacks.folder.rglob("*"):
        assert not file.is_file() or b"planted-9f2c" not in file.read_bytes()
