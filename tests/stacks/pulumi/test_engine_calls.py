"""How the engine is called, seen from a double of the command `pulumi`: order and secrets."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pulumi_command
import pytest
from pulumi.automation import PulumiCommand

from gcluster.stacks.provider import ProviderError, SiteEvent
from gcluster.stacks.pulumi.engine import checkpoint
from gcluster.stacks.pulumi.engine.automation import Engine
from gcluster.stacks.pulumi.engine.command import StackPlace

SECRET = "planted-horse-9f2c"  # noqa: S105  # to be looked for


class Command:
    """The double where it is installed, and its calls."""

    def __init__(self, folder: Path) -> None:
        """Install it."""
        self.root = folder / "pulumi"
        binary = self.root / "bin" / "pulumi"
        binary.parent.mkdir(parents=True)
        source = Path(pulumi_command.__file__).read_text(encoding="utf-8")
        binary.write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
        binary.chmod(0o755)
        self.folder = binary.parent

    def calls(self) -> list[str]:
        """Return the verbs of Pulumi that were called, those that change something."""
        log = (self.folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()
        answer = [json.loads(line)["words"] for line in log]
        verbs = [" ".join(w[:2]) if w[0] == "stack" else w[0] for w in answer]
        return [v for v in verbs if v not in {"stack output", "stack history", "stack select"}]

    def lock(self, *, host: str, pid: int) -> None:
        """Let the stack be locked."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        text = pulumi_command.LOCKED.format(host=host, pid=pid, when=when)
        (self.folder / "lock").write_text(text, encoding="utf-8")


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
def engine(command: Command, tmp_path: Path) -> Callable[..., Engine]:
    """Give what opens the stack again."""

    def open_it(emit: Callable[[SiteEvent], None] = lambda _: None, **given: float) -> Engine:
        place = StackPlace(
            cluster="demo", site="east", state=f"file://{tmp_path}/state", workdir=tmp_path / "work"
        )
        return Engine(
            place,
            lambda: None,
            passphrase=lambda: SECRET,
            emit=emit,
            command=PulumiCommand(root=str(command.root)),
            **given,
        )

    return open_it


def gone() -> int:
    """Return the number of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_a_stack_is_made_once_and_read_back_before_it_is_changed(
    command: Command, engine: Callable[[], Engine]
) -> None:
    for _ in range(2):
        stack = engine()
        stack.refresh()
        stack.up()
    assert command.calls() == ["stack init", "refresh", "up", "refresh", "up"]


def zombie() -> int:
    """Return the number of a process that has ended, whose exit code was not collected."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, done.pid, os.WEXITED | os.WNOWAIT)
    return done.pid


@pytest.mark.parametrize("ended", [gone, zombie])
def test_the_lock_of_a_killed_run_of_this_machine_is_freed_then_it_continues(
    command: Command, engine: Callable[[], Engine], ended: Callable[[], int]
) -> None:
    engine().refresh()
    command.lock(host=socket.gethostname(), pid=ended())
    stack = engine()
    stack.refresh()
    stack.up()
    assert command.calls()[2:] == ["refresh", "cancel", "refresh", "up"]


@pytest.mark.parametrize("whose", ["a process that runs", "another machine"])
def test_a_lock_of_another_holder_is_left_and_reported(
    command: Command, engine: Callable[..., Engine], whose: str
) -> None:
    engine().refresh()
    host = socket.gethostname() if whose == "a process that runs" else "elsewhere"
    command.lock(host=host, pid=os.getpid() if host == socket.gethostname() else gone())
    with pytest.raises(ProviderError) as refused:
        engine(patience_s=0.0).refresh()
    assert refused.value.diagnostics[0].code == "GC964"
    assert "cancel" not in command.calls()


def test_what_the_engine_of_a_killed_run_writes_as_it_ends_is_waited_for_and_kept(
    command: Command, engine: Callable[..., Engine]
) -> None:
    written = b'{"version": 3, "deployment": {"resources": [{"urn": "late", "type": "a:b:C"}]}}'
    reported: list[str] = []

    def on_event(event: SiteEvent) -> None:
        reported.append(event.what)
        (command.folder / "stack.json").write_bytes(written)
        outliving.communicate()

    def edit(exported: bytes) -> bytes:
        return exported.replace(b"[", b'[{"urn": "mine", "type": "a:b:C"}, ').replace(b", ]", b"]")

    stack = engine(on_event)
    stack.refresh()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as outliving:
        command.lock(host=socket.gethostname(), pid=outliving.pid)
        stack.change(edit)
    assert reported == [f"waits for the engine of a killed run to end: process {outliving.pid}"]
    assert [one.urn for one in checkpoint.resources(stack.export())] == ["mine", "late"]


def test_an_export_is_changed_and_read_again(
    command: Command, engine: Callable[[], Engine]
) -> None:
    stack = engine()
    urn = "urn:pulumi:east::gcluster-demo::aws:s3/bucket:Bucket::b"
    item = {"urn": urn, "type": "aws:s3/bucket:Bucket", "id": "b", "protect": True,
            "inputs": {"x": {"ciphertext": "v1:abc"}}}  # fmt: skip
    made = msgspec.json.encode({"version": 3, "deployment": {"resources": [item]}})
    stack.change(lambda _: made)
    key = checkpoint.resource_key(urn)
    stack.change(lambda exported: checkpoint.guarded(exported, {key: False}))
    [found] = checkpoint.resources(engine().export())
    assert (found.protect, found.retain_on_delete) == (False, False)
    assert b"v1:abc" in engine().export()
    assert checkpoint.guarded(engine().export(), {key: False}) is None
    assert not list((command.root.parent / "work").glob("tmp*")), "no export is left on the disk"


def test_an_empty_stack_is_removed_and_recreated(
    command: Command, engine: Callable[[], Engine]
) -> None:
    stack = engine()
    stack.destroy()
    stack.remove()
    stack.refresh()
    assert command.calls() == ["stack init", "destroy", "stack rm", "stack init", "refresh"]


def test_the_cloud_is_read_back_as_a_preview_and_one_resource_is_recreated(
    command: Command, engine: Callable[[], Engine]
) -> None:
    urn = "urn:pulumi:east::gcluster-demo::aws:ec2/instance:Instance::demo-east-gpu001"
    stack = engine()
    stack.detect_drift()
    stack.up(again=[urn])
    log = (command.folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    words = [json.loads(line)["words"] for line in log]
    (refresh,) = [w for w in words if w[0] == "refresh"]
    (up,) = [w for w in words if w[0] == "up"]
    assert "--preview-only" in refresh
    assert up[up.index("--replace") + 1] == urn


def test_the_passphrase_is_in_no_argument_and_in_no_file(
    command: Command, engine: Callable[[], Engine], tmp_path: Path
) -> None:
    stack = engine()
    stack.refresh()
    stack.up()
    stack.change(lambda exported: exported)
    stack.outputs()
    stack.cancel()
    stack.destroy()
    stack.remove()
    log = command.folder / "calls.jsonl"
    answer = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert len(answer) > 8
    assert not [call["words"] for call in answer if SECRET in " ".join(call["words"])]
    assert {call["environment"]["PULUMI_CONFIG_PASSPHRASE"] for call in answer} == {SECRET}
    assert SECRET not in repr((stack, stack.__dict__["_place"]))
    shutil.rmtree(command.root)  # the double wrote its environment down
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_the_passphrase_is_read_when_the_engine_starts_and_not_before(tmp_path: Path) -> None:
    def refuse() -> str:
        raise AssertionError

    place = StackPlace(cluster="demo", site="east", state=f"file://{tmp_path}", workdir=tmp_path)
    Engine(place, lambda: None, passphrase=refuse, emit=lambda _: None)
