"""Stacks are kept where the spec says, the engine is found, and makes what the program requests."""

import importlib.metadata
from pathlib import Path

import pulumi
import pulumi_random as random
import pytest
from pulumi.automation import PulumiCommand

import gcluster.stacks.aws
from gcluster.stacks.provider import ProviderError, SiteEvent
from gcluster.stacks.pulumi.engine import command
from gcluster.stacks.pulumi.engine.automation import Engine
from gcluster.stacks.pulumi.engine.checkpoint import guarded, resources
from gcluster.stacks.pulumi.engine.command import (
    StackPlace,
    backend_url,
    find_command,
    find_roots,
    make_backend,
)

PASSPHRASE = "correct horse"  # noqa: S105  # of stacks that tests make


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("file:///srv/g/research/", "file:///srv/g/research/pulumi"),
        ("s3://acme/research", "s3://acme/research/pulumi"),
        ("s3://acme?region=eu-west-1", "s3://acme/pulumi?region=eu-west-1"),
        ("gs://acme/a/b", "gs://acme/a/b/pulumi"),
        ("azblob://account/box", "azblob://box/pulumi?storage_account=account"),
        ("azblob://account/box/a", "azblob://box/a/pulumi?storage_account=account"),
        (
            "azblob://account/box?domain=blob.core.chinacloudapi.cn",
            "azblob://box/pulumi?storage_account=account&domain=blob.core.chinacloudapi.cn",
        ),
        (
            "s3://acme/x?endpoint=https%3A%2F%2Fminio.example%3A9000&use_path_style=true",
            "s3://acme/x/pulumi?endpoint=https%3A%2F%2Fminio.example%3A9000&use_path_style=true",
        ),
        ("file:///srv/my state/50%?#1", "file:///srv/my%20state/50%25%3F%231/pulumi"),
    ],
)
def test_the_state_url_takes_pulumis_form(state: str, expected: str) -> None:
    assert backend_url(state) == expected


@pytest.mark.parametrize("state", ["https://x/y", "azblob://account", "s3:///x", ""])
def test_what_names_no_place_is_refused(state: str) -> None:
    with pytest.raises(ValueError, match=r"write .*(file:///PATH|BUCKET|CONTAINER)"):
        backend_url(state)


def test_a_folder_of_any_name_is_made_where_the_state_has(tmp_path: Path) -> None:
    state = tmp_path / "my state 50%"
    make_backend(
        StackPlace(cluster="demo", site="e", state=f"file://{state}", workdir=tmp_path / "work")
    )
    assert (state / "pulumi").is_dir()


def place_at(folder: Path) -> StackPlace:
    return StackPlace(
        cluster="demo", site="east", state=f"file://{folder}/state", workdir=folder / "work"
    )


def test_the_passphrase_is_in_the_environment_alone(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    environment = place.environment(PASSPHRASE)
    assert environment.pop("PULUMI_CONFIG_PASSPHRASE") == PASSPHRASE
    assert PASSPHRASE not in repr((environment, place))


def test_the_folders_of_a_stack_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    make_backend(place)
    for folder in (tmp_path / "state/pulumi", place.workdir):
        assert folder.stat().st_mode & 0o777 == 0o700


def fake_command(root: Path, answer: str) -> None:
    """Put a script in the place of the engine: it can only say its version."""
    command = root / "bin" / "pulumi"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho {answer}\n")
    command.chmod(0o755)


def no_installer(root: Path) -> PulumiCommand:
    message = f"no way to the web for {root.name}"
    raise OSError(message)


def test_the_engine_of_the_path_comes_first(tmp_path: Path) -> None:
    fake_command(tmp_path / "opt", "v3.999.0")
    fake_command(tmp_path / "home/.pulumi", "v3.998.0")
    roots = find_roots(tmp_path / "home", path=str(tmp_path / "opt/bin"))
    assert roots == [tmp_path / "opt", tmp_path / "home/.pulumi"]
    found = find_command(home=tmp_path / "home", path=str(tmp_path / "opt/bin"))
    assert str(found.version) == "3.999.0"


def test_an_engine_that_does_not_fit_is_passed_over(tmp_path: Path) -> None:
    fake_command(tmp_path / "opt", "v2.0.0")
    fake_command(tmp_path / "home/.pulumi", "v3.998.0")
    found = find_command(home=tmp_path / "home", path=str(tmp_path / "opt/bin"))
    assert str(found.version) == "3.998.0"


def test_the_installer_gets_the_version_of_the_sdk(tmp_path: Path) -> None:
    wanted = importlib.metadata.version("pulumi")

    def install(root: Path) -> PulumiCommand:
        assert root == tmp_path / ".pulumi/versions" / wanted
        fake_command(root, f"v{wanted}")
        return PulumiCommand(root=str(root))

    assert str(find_command(home=tmp_path, path="", install=install).version) == wanted
    again = find_command(home=tmp_path, path="", install=no_installer)
    assert str(again.version) == wanted


def test_without_an_engine_it_reports_what_was_tried_and_what_to_do(tmp_path: Path) -> None:
    fake_command(tmp_path / "opt", "v2.0.0")
    with pytest.raises(ProviderError) as failure:
        find_command(home=tmp_path, path=str(tmp_path / "opt/bin"), install=no_installer)
    [finding] = failure.value.diagnostics
    assert finding.code == "GC965"
    assert "Minimum version" in finding.detail
    assert "no way to the web" in finding.detail
    assert "gcluster plan" in finding.hint


def test_a_missing_extra_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        gcluster.stacks.aws, "MODULES", ("pulumi", "no_such_module", "no.such.module")
    )
    with pytest.raises(ProviderError) as failure:
        command.require("aws")
    [finding] = failure.value.diagnostics
    assert finding.code == "GC967"
    assert "no_such_module, no.such.module" in finding.summary
    assert finding.hint == "pip install 'gcluster[aws]'"


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_the_extras_of_a_checkout_are_there(cloud: str) -> None:
    command.require(cloud)


def engine(folder: Path, *, fail: bool = False, emitted: list[SiteEvent] | None = None) -> Engine:
    def program() -> None:
        pet = random.RandomPet("pet", length=2)
        if fail:
            random.RandomInteger("broken", min=2, max=1)
        pulumi.export("pet", pet.id)
        pulumi.export("hidden", random.RandomPassword("password", length=12).result)

    events = [] if emitted is None else emitted
    return Engine(place_at(folder), program, passphrase=lambda: PASSPHRASE, emit=events.append)


@pytest.mark.engine
def test_a_stack_is_previewed_made_found_unchanged_and_removed(tmp_path: Path) -> None:
    emitted: list[SiteEvent] = []
    stack = engine(tmp_path, emitted=emitted)
    planned = {(c.resource.key, c.effect) for c in stack.preview()}
    assert planned == {("RandomPet/pet", "create"), ("RandomPassword/password", "create")}
    assert {(c.resource.key, c.effect) for c in stack.up()} == planned
    assert {event.what for event in emitted} >= {"RandomPet pet is made"}
    assert set(stack.outputs()) == {"pet"}
    assert {c.effect for c in engine(tmp_path).up()} == {"keep"}
    assert {c.effect for c in stack.refresh()} == {"keep"}
    assert {c.effect for c in stack.destroy()} == {"delete"}


@pytest.mark.engine
def test_protected_data_outlives_a_destroy_until_it_is_freed(tmp_path: Path) -> None:
    def program() -> None:
        network = random.RandomPet("network")
        kept = pulumi.ResourceOptions(protect=True, retain_on_delete=True, depends_on=[network])
        random.RandomPet("data", opts=kept)
        random.RandomPet("node")

    def opened() -> Engine:
        return Engine(place_at(tmp_path), program, passphrase=lambda: PASSPHRASE, emit=print)

    opened().up()
    assert {change.resource.name for change in opened().destroy()} == {"node"}
    left = resources(opened().export())
    assert {r.key.rpartition("::")[2] for r in left} >= {"network", "data"}
    [data] = [r for r in left if r.protect]
    opened().change(lambda exported: guarded(exported, {data.key: False}))
    assert {change.effect for change in opened().destroy()} == {"delete"}
    assert resources(opened().export()) == ()
    opened().remove()


@pytest.mark.engine
def test_a_failed_resource_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    with pytest.raises(ProviderError) as failure:
        engine(tmp_path, fail=True).up()
    assert [f.summary.partition(":")[0] for f in failure.value.diagnostics] == [
        "RandomInteger broken"
    ]
    assert {c.effect for c in engine(tmp_path).up()} == {"keep"}


@pytest.mark.engine
def test_no_file_of_a_stack_has_the_passphrase_or_a_secret(tmp_path: Path) -> None:
    engine(tmp_path).up()
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert PASSPHRASE.encode() not in file.read_bytes()
