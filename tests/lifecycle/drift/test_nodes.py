"""What a node reported is compared with what its steps left there, without queries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gcluster.inventory.compile import Step
from gcluster.inventory.compile.steps import Stage
from gcluster.lifecycle.nodes.converge.stamps import WORN
from gcluster.lifecycle.nodes.ssh import Unreachable
from gcluster.lifecycle.status.drift.nodes import (
    Change,
    NodeFindings,
    NodeReport,
    Seal,
    judge,
    read_report,
)

A, B = "a" * 64, "b" * 64
KEY = "/etc/munge/munge.key"


def _step(role: str, phase: Any, **variables: object) -> Step:
    return Step(stage=Stage.SCHEDULER, role=role, phase=phase, variables=dict(variables))


WANTED = {
    "munge.install": (_step("munge", "install"), A),
    "munge.configure": (_step("munge", "configure"), A),
    "munge.verify": (_step("munge", "verify"), A),
    "nfs.join": (_step("nfs", "join", nfs_mounts=[{"path": "/home"}]), A),
    "node_health.verify": (_step("node_health", "verify"), A),
}
LEFT: dict[str, dict[tuple[str, str], str]] = {
    "munge.install": {("package", "munge"): "0.5.15-4"},
    "munge.configure": {
        ("file", KEY): A,
        ("mode", KEY): "400,munge,munge",
        ("unit", "munge"): "enabled,active",
    },
    "nfs.join": {("mount", "/home"): "server:/home,nfs4,rw"},
    "node_health.verify": {("link", "eth0"): "up,9000,100000"},
}
SOUND = NodeReport(
    stamps=dict.fromkeys(WANTED, A),
    seals={step: Seal(digest=A, at=1000, items=items) for step, items in LEFT.items()},
    now={item: value for items in LEFT.values() for item, value in items.items()},
    touched={KEY: 900},
    health={"verdict": "fit"},
    packages=(),
    commands=(),
    scheduler="",
)


def _judge(**changes: Any) -> NodeFindings:
    return judge("gpu001", WANTED, replace(SOUND, **changes), cluster="demo")


def _now(**changes: str | None) -> dict[tuple[str, str], str]:
    """Return what is there after some things changed; the name of a change is its kind."""
    found = dict(SOUND.now)
    for kind, value in changes.items():
        (item,) = [item for item in found if item[0] == kind]
        if value is None:
            del found[item]
        else:
            found[item] = value
    return found


def test_a_node_that_is_as_its_steps_left_it_has_not_drifted() -> None:
    assert _judge() == NodeFindings()


@pytest.mark.parametrize(
    ("kind", "value", "answer", "fixable"),
    [
        ("package", "0.5.16-1", "package munge 0.5.15-4 -> 0.5.16-1", True),
        ("package", None, "package munge 0.5.15-4 -> gone", True),
        ("file", B, f"key {KEY}  -> another", True),
        ("file", None, f"key {KEY}  -> gone", True),
        ("mode", "644,root,root", f"mode {KEY} 400,munge,munge -> 644,root,root", True),
        ("unit", "disabled,active", "unit munge enabled,active -> disabled,active", True),
        ("unit", "enabled,failed", "unit munge enabled,active -> enabled,failed", True),
        ("mount", None, "mount /home server:/home,nfs4,rw -> gone", True),
        ("mount", "tmpfs,tmpfs,rw", "mount /home server:/home,nfs4,rw -> tmpfs,tmpfs,rw", False),
        ("link", "down,9000,", "link eth0 up,9000,100000 -> down,9000,", False),
        ("link", "up,1500,100000", "link eth0 up,9000,100000 -> up,1500,100000", False),
    ],
)
def test_each_item_that_is_otherwise_is_reported_with_what_it_was(
    kind: str, value: str | None, answer: str, fixable: bool
) -> None:
    (drift,) = _judge(now=_now(**{kind: value})).drifts
    assert f"{drift.kind} {drift.name} {drift.was} -> {drift.now}" == answer
    assert drift.fixable is fixable
    assert bool(drift.hint) is not fixable
    assert drift.plane == ("fabric" if kind == "link" else "node")


def test_no_hash_of_a_content_is_shown() -> None:
    (drift,) = _judge(now=_now(file=B)).drifts
    assert A not in repr(drift)
    assert B not in repr(drift)


def test_a_daemon_that_is_just_starting_again_still_runs() -> None:
    assert _judge(now=_now(unit="enabled,activating")) == NodeFindings()


def test_a_unit_that_did_not_run_when_it_was_sealed_need_not_run() -> None:
    left = {**LEFT["munge.configure"], ("unit", "munge"): "enabled,activating"}
    seals = {**SOUND.seals, "munge.configure": Seal(digest=A, at=1000, items=left)}
    assert _judge(seals=seals, now=_now(unit="enabled,inactive")) == NodeFindings()


def test_something_new_where_a_step_left_nothing_is_drift() -> None:
    now = {**SOUND.now, ("mount", "/home"): "tmpfs,tmpfs,rw"}
    seals = {**SOUND.seals, "nfs.join": Seal(digest=A, at=1000, items={})}
    (drift,) = _judge(now=now, seals=seals).drifts
    assert (drift.kind, drift.was, drift.now) == ("mount", "", "tmpfs,tmpfs,rw")
    assert drift.hint == "on the node: umount /home"


def test_of_two_seals_that_report_of_a_item_the_newer_counts() -> None:
    shared = {("package", "munge"): "0.5.16-1"}
    later = Seal(digest=A, at=2000, items={**LEFT["munge.configure"], **shared})
    seals = {**SOUND.seals, "munge.configure": later}
    assert _judge(seals=seals, now=_now(package="0.5.16-1")) == NodeFindings()


def test_what_a_step_did_and_its_verification_are_repeated() -> None:
    (drift,) = _judge(now=_now(file=B)).drifts
    assert drift.steps == ("munge.configure", "munge.verify")


@pytest.mark.parametrize(
    ("carried", "sealed", "drifts", "behind"),
    [
        (None, A, ["removed"], []),
        (B, A, ["another"], []),
        (B, B, [], ["its inputs are others now"]),
        (B, None, [], ["its inputs are others now"]),
        (None, None, [], ["never done here"]),
        (WORN, A, [], ["the node was started again since"]),
    ],
)
def test_a_stamp_that_was_touched_is_reported_from_a_step_that_is_not_done_yet(
    carried: str | None, sealed: str | None, drifts: list[str], behind: list[str]
) -> None:
    stamps = {k: v for k, v in SOUND.stamps.items() if k != "munge.install"}
    stamps |= {} if carried is None else {"munge.install": carried}
    seals = {k: v for k, v in SOUND.seals.items() if k != "munge.install"}
    items = LEFT["munge.install"]
    seals |= {} if sealed is None else {"munge.install": Seal(digest=sealed, at=1, items=items)}
    found = _judge(stamps=stamps, seals=seals)
    assert [d.now for d in found.drifts if d.kind == "stamp"] == drifts
    assert [item.reason for item in found.behind] == behind


def test_without_a_seal_nothing_is_claimed_and_that_is_reported() -> None:
    seals = {k: v for k, v in SOUND.seals.items() if k != "munge.configure"}
    found = _judge(seals=seals, now=_now(file=B, unit="disabled,failed"))
    assert (found.drifts, found.unsealed) == ((), 1)


def test_who_changed_a_file_is_who_used_sudo_at_that_time() -> None:
    commands = ((1100, "eve", "/usr/bin/ls"), (5000, "ada", "/usr/bin/vi x"))
    (drift,) = _judge(now=_now(file=B), touched={KEY: 5010}, commands=commands).drifts
    assert (drift.when, drift.who) == ("1970-01-01T01:23:30Z", "ada")


def test_who_changed_a_package_is_in_the_log_of_packages() -> None:
    history = (
        Change(at="2026-11-22 10:00:00", who="", what="apt-get install munge"),
        Change(at="2026-11-22 12:00:00", who="ada", what="apt-get upgrade munge:amd64 (a, b)"),
    )
    (drift,) = _judge(now=_now(package="0.5.16-1"), packages=history).drifts
    assert (drift.when, drift.who) == ("2026-11-22 12:00:00", "ada")


@pytest.mark.parametrize(
    ("reason", "plane"), [("nvlink-down: GPU 3", "fabric"), ("disk-full: /", "node")]
)
def test_what_the_node_found_of_itself_is_reported(reason: str, plane: str) -> None:
    health = {"verdict": "unfit", "reason": reason, "time": "2026-11-22T10:00:00Z"}
    (drift,) = _judge(health=health).drifts
    assert (drift.plane, drift.now, drift.when) == (plane, reason, "2026-11-22T10:00:00Z")


@given(st.sets(st.sampled_from(sorted(SOUND.now))))
def test_exactly_what_changed_is_reported(changed: set[tuple[str, str]]) -> None:
    now = {i: ("disabled,failed" if i[0] == "unit" else "x") if i in changed else v
           for i, v in SOUND.now.items()}  # fmt: skip
    answer = {("file" if d.kind == "key" else d.kind, d.name) for d in _judge(now=now).drifts}
    assert answer == changed


ANSWER = f"""\
=== stamps
started 100
munge.configure 200
munge.configure:{A}
end of stamps
=== seals
at 300 munge.configure
munge.configure:digest {A} stamp
munge.configure:file {B} {KEY}
munge.configure:sysctl 4096 87380 6291456 net.ipv4.tcp_rmem
=== now
file {A} {KEY}
mode 400,munge,munge {KEY}
=== touched
250 {KEY}
=== health
{{"verdict": "fit"}}
=== packages
Start-Date: 2026-11-22  10:00:00
Commandline: apt-get install munge
Requested-By: ada (2001)
Install: munge:amd64 (0.5.15-4)
=== sudo
1763790000.123456 gpu001 sudo[12]:  ada : TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/usr/bin/vi x
=== scheduler
node|gpu001|idle|Unknown|Unknown|none
=== end
"""


def test_an_answer_is_read_whole() -> None:
    answer = read_report(ANSWER)
    assert isinstance(answer, NodeReport)
    assert answer.stamps == {"munge.configure": A}
    assert (
        answer.seals["munge.configure"].items["sysctl", "net.ipv4.tcp_rmem"] == "4096 87380 6291456"
    )
    assert answer.now["mode", KEY] == "400,munge,munge"
    assert answer.touched == {KEY: 250}
    assert answer.packages[0].who == "ada"
    assert answer.commands == ((1763790000, "ada", "/usr/bin/vi x"),)
    assert answer.scheduler == "node|gpu001|idle|Unknown|Unknown|none\n"


@given(st.integers(0, len(ANSWER) - 1))
def test_an_answer_that_was_cut_short_is_none(length: int) -> None:
    assert isinstance(read_report(ANSWER[:length]), Unreachable)


BASE = _step("base", "configure", base_users=[{"name": "ada"}])
SSSD = _step("sssd", "configure")
RULES = "/etc/sudoers.d/gcluster-directory"
KNOWN = {("entry", "/etc/sudoers"): A, ("account", "root"): "0,/bin/bash"}


def _strangers(known: dict[tuple[str, str], str], **now: str) -> list[tuple[str, str, str]]:
    """Return what is reported of a node that has more than `known` now: name -> value, by kind."""
    wanted = {"base.configure": (BASE, A), "sssd.configure": (SSSD, A)}
    more = {(name.partition(" ")[0], name.partition(" ")[2]): v for name, v in now.items()}
    seals = {
        "base.configure": Seal(digest=A, at=1000, items=known),
        "sssd.configure": Seal(digest=A, at=2000, items={("file", RULES): A}),
    }
    report = replace(
        SOUND, stamps=dict.fromkeys(wanted, A), seals=seals, touched={},
        now=known | {("file", RULES): A} | more,
    )  # fmt: skip
    found = judge("gpu001", wanted, report, cluster="demo").drifts
    assert all(drift.hint and not drift.fixable for drift in found)
    assert all(f"gcluster drift demo --accept gpu001:{d.name}" in d.hint for d in found)
    return [(drift.kind, drift.name, drift.now) for drift in found]


@pytest.mark.parametrize(
    ("name", "value", "answer"),
    [
        ("entry /etc/sudoers.d/zz", B, "new here"),
        ("entry /etc/sudoers", B, "another"),
        ("entry /etc/ssh/sshd_config.d/00.conf", B, "new here"),
        ("account eve", "0,/bin/bash", "0,/bin/bash"),
        ("account sudo:eve", "member", "member"),
    ],
)
def test_a_stranger_who_may_log_in_is_reported_and_left_to_a_person(
    name: str, value: str, answer: str
) -> None:
    kind, _, path = name.partition(" ")
    assert _strangers(KNOWN, **{name: value}) == [(kind, path, answer)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"entry {RULES}", B),  # its own seal says what it should be
        ("account ada", "2001,/bin/bash"),
        ("account sudo:ada", "member"),
        ("entry /etc/motd", B),
    ],
)
def test_what_roles_write_and_users_of_the_spec_are_no_strangers(name: str, value: str) -> None:
    assert _strangers(KNOWN, **{name: value}) == []


def test_a_seal_that_has_no_entries_can_t_call_one_new() -> None:
    """Of a version that did not look at them."""
    assert _strangers({}, **{"entry /etc/sudoers": A, "account root": "0,/bin/bash"}) == []


def test_an_entry_that_is_gone_allows_no_login() -> None:
    known = KNOWN | {("entry", "/etc/sudoers.d/site"): A}
    report = replace(
        SOUND, stamps={"base.configure": A}, now=KNOWN, touched={},
        seals={"base.configure": Seal(digest=A, at=1000, items=known)},
    )  # fmt: skip
    assert judge("gpu001", {"base.configure": (BASE, A)}, report, cluster="demo").drifts == ()
