"""What stays in a stack, and how its protection is changed, by the stack's own state."""

from __future__ import annotations

import os
import socket

import msgspec
import pytest

from gcluster.stacks.pulumi.engine.checkpoint import (
    begun,
    guarded,
    resource_key,
    resources,
    staying,
    taken_up,
)
from gcluster.stacks.pulumi.engine.command import left_behind_by


def urn(name: str) -> str:
    return f"urn:pulumi:east::demo::a:b:C::{name}"


def exported(*items: dict[str, object]) -> bytes:
    stack = {"urn": "urn:pulumi:east::demo::pulumi:pulumi:Stack::demo-east",
             "type": "pulumi:pulumi:Stack", "custom": False}  # fmt: skip
    listed = [
        {"type": "a:b:C", "custom": True, "secret": {"ciphertext": "v1:x"}} | i for i in items
    ]
    return msgspec.json.encode({"version": 3, "deployment": {"resources": [stack, *listed]}})


CHAIN = exported(
    {"urn": urn("provider"), "id": "0"},
    {"urn": urn("network"), "id": "n"},
    {"urn": urn("frame"), "custom": False},
    {"urn": urn("zone"), "id": "z"},
    {"urn": urn("host"), "id": "h"},
    {"urn": urn("lone"), "id": "l", "dependencies": None, "propertyDependencies": {"a": None}},
    {
        "urn": urn("data"), "id": "d", "protect": True, "retainOnDelete": True,
        "parent": urn("frame"), "provider": f"{urn('provider')}::0", "deletedWith": urn("zone"),
        "dependencies": [urn("network")], "propertyDependencies": {"host": [urn("host")]},
    },
)  # fmt: skip


def names(keys: frozenset[str]) -> set[str]:
    return {key.rpartition("::")[2] for key in keys}


def test_what_is_protected_stays_with_all_that_it_needs() -> None:
    found = resources(CHAIN)
    assert names(staying(found)) == {"data", "frame", "provider", "zone", "network", "host"}
    assert staying(found, {resource_key(urn("data"))}) == frozenset()


def test_a_stack_that_was_never_updated_has_nothing() -> None:
    assert resources(b'{"version": 3, "deployment": {}}') == ()
    assert guarded(b'{"version": 3, "deployment": {}}', {"x": True}) is None


def test_what_a_killed_run_made_is_taken_up_and_what_it_replaces_goes() -> None:
    made = {"urn": urn("vpc"), "type": "aws:ec2/vpc:Vpc", "id": ""}
    raw = msgspec.json.decode(exported({**made, "id": "vpc-old"}))
    raw["deployment"]["pending_operations"] = [
        {"resource": made, "type": "creating"},
        {"resource": {**made, "urn": urn("lost")}, "type": "creating"},
    ]
    answer = msgspec.json.encode(raw)
    assert [one.name for one in begun(answer)] == ["vpc", "lost"]
    changed = msgspec.json.decode(taken_up(answer, {urn("vpc"): "vpc-new"}))["deployment"]
    kept = {one["id"]: one.get("delete", False) for one in changed["resources"] if "id" in one}
    assert kept == {"vpc-old": True, "vpc-new": False}
    assert "pending_operations" not in changed


def test_freeing_lifts_retention_too_and_changes_nothing_else() -> None:
    key = resource_key(urn("data"))
    changed = guarded(CHAIN, {key: False})
    assert changed is not None
    before = msgspec.json.decode(CHAIN)["deployment"]["resources"]
    after = msgspec.json.decode(changed)["deployment"]["resources"]
    assert after[:-1] == before[:-1]
    assert after[-1] == before[-1] | {"protect": False, "retainOnDelete": False}
    assert guarded(changed, {key: False}) is None
    assert msgspec.json.decode(guarded(changed, {key: True}) or b"") == msgspec.json.decode(CHAIN)


OWN = f"by ops@{socket.gethostname()}"
EARLIER, LATER = "2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"a: created {OWN} (pid 99999999) at x", ()),
        (f"a: created {OWN} (pid {os.getpid()}) at {LATER}", (os.getpid(),)),
        (f"a: created {OWN} (pid {os.getpid()}) at {EARLIER}", ()),
        (f"a: created {OWN} (pid 1) at x", (1,)),
        ("a: created by ops@elsewhere (pid 99999999) at x", None),
        (f"a: created {OWN} (pid 99999999) at x\nb: created {OWN} (pid 1) at x", (1,)),
        ("[409] Conflict: Another update is currently in progress.", None),
    ],
    ids=["gone", "own", "another-with-its-pid", "alive", "elsewhere", "one-of-two", "no-lock"],
)
def test_locks_are_left_behind_by_processes_of_this_machine_that_are_gone(
    message: str, expected: tuple[int, ...] | None
) -> None:
    assert left_behind_by(message) == expected
