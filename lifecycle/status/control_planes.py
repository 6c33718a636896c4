"""What keeps a control plane alive over months: certificates, snapshots, and room in etcd."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ...inventory.hosts import Host
from ...schemas.structure.decoding import decode_json
from ..nodes.ssh import SshSession, Unreachable
from ..nodes.ssh.arguments import AS_ROOT
from .conditions import Cause, Condition

FEWEST_DAYS = 30
"""Below this an alert is due: the timer renews what has less than 60 days left, each week."""
LATE_S = 900
"""Seconds after its time that a snapshot may take: etcd's 8 GiB at most (its own limit), and what
the timer delays."""
FULLEST = 0.8
"""Share of its quota above which an alert is due: at all of it etcd accepts no more writes."""
_METRICS = "127.0.0.1:2381"
"""Where kubeadm has etcd serve its metrics, to the host alone (v1.35, listen-metrics-urls)."""
_LIMIT_S = 30
_SNAPSHOTS = "/var/lib/gcluster/etcd-snapshots"
_TIMER = "kubernetes-snapshot.timer"
_ASK = f"""
echo '=== certificates'
{AS_ROOT} /usr/local/libexec/gcluster/kubernetes-certificates.py
echo '=== snapshot'
{AS_ROOT} find {_SNAPSHOTS} -name '*.db' -printf '%T@\\n' 2>/dev/null | sort -n | tail -n 1
echo '=== timer'
systemctl is-active {_TIMER}
echo '=== due'
due=$(systemctl show --property=LastTriggerUSec --value {_TIMER})
[ -z "$due" ] || [ "$due" = n/a ] || date --date="$due" +%s
echo '=== etcd'
python3 -c '
from http.client import HTTPConnection
etcd = HTTPConnection("{_METRICS}")
etcd.request("GET", "/metrics")
print(etcd.getresponse().read().decode())' \\
    2>/dev/null | grep -E '^etcd_(mvcc_db_total_size_in|server_quota_backend)_bytes '
echo '=== now'
date +%s
true
"""
_SECTION = re.compile(r"^=== (\w+)\n", re.MULTILINE)


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one control plane; times in seconds since 1970."""

    host: str
    days: dict[str, int]
    """Certificate -> whole days that it is valid; {}: unknown."""
    snapshot: float | None
    """When the newest was made; None: there is none."""
    timer: str
    """active, inactive, failed, from systemctl."""
    due: float | None
    """When the timer last wanted one; None: never yet."""
    now: float
    size: float | None = None
    """Bytes of etcd's database; None: unknown."""
    quota: float | None = None
    """Bytes that it may have."""


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """What a status reports of the control planes, and what to do."""

    conditions: tuple[Condition, ...] = ()
    causes: tuple[Cause, ...] = ()


def watch_control_planes(
    cluster: str, session: SshSession, control_planes: Iterable[Host]
) -> Watched:
    """Query every control plane at once; an unreachable one reports nothing here."""
    answers = session.run_many(control_planes, _ASK, timeout_s=_LIMIT_S)
    seen = [
        read_keeping(host, answer.stdout)
        for host, answer in answers.items()
        if not isinstance(answer, Unreachable)
    ]
    return judged(cluster, seen) if seen else Watched()


def judged(cluster: str, seen: Iterable[Keeping]) -> Watched:
    """Return the conditions, and a cause for each control plane that is in danger."""
    planes = tuple(seen)
    late = [cause for one in planes if (cause := _certificates(cluster, one))]
    unsaved = [cause for one in planes if (cause := _snapshots(cluster, one))]
    full = [cause for one in planes if (cause := _room(cluster, one))]
    shares = [one.size / one.quota for one in planes if one.size is not None and one.quota]
    left = min((days for one in planes for days in one.days.values()), default=None)
    newest = max((one.snapshot for one in planes if one.snapshot is not None), default=None)
    age = f"the newest is {_hours(planes[0].now - newest)} old" if newest else "none is due yet"
    return Watched(
        conditions=(
            _condition(
                "CertificatesHold", late, f"{left} days" if left is not None else "not known"
            ),
            _condition("EtcdSnapshots", unsaved, age),
            _condition("EtcdHasRoom", full, f"{max(shares):.0%} of its quota")
            if shares
            else Condition(
                name="EtcdHasRoom", status="unknown", reason="etcd does not report its size"
            ),
        ),
        causes=(*late, *unsaved, *full),
    )


def read_keeping(host: str, text: str) -> Keeping:
    """Read the answer of one control plane."""
    _, *rest = _SECTION.split(text)
    contents = {name: content.strip() for name, content in zip(rest[::2], rest[1::2], strict=True)}
    try:
        days = decode_json(contents.get("certificates") or "{}", dict[str, int])
    except msgspec.DecodeError:
        days = {}
    etcd = dict(line.split() for line in contents.get("etcd", "").splitlines())
    return Keeping(
        host=host,
        size=_number(etcd.get("etcd_mvcc_db_total_size_in_bytes", "")),
        quota=_number(etcd.get("etcd_server_quota_backend_bytes", "")),
        days=days,
        snapshot=_number(contents.get("snapshot", "")),
        timer=contents.get("timer", ""),
        due=_number(contents.get("due", "")),
        now=_number(contents.get("now", "")) or 0.0,
    )


def _certificates(cluster: str, one: Keeping) -> Cause | None:
    soon = sorted(name for name, days in one.days.items() if days < FEWEST_DAYS)
    if one.days and not soon:
        return None
    summary = f"{soon[0]} holds for {one.days[soon[0]]} days" if soon else "validity unknown"
    return Cause(
        kind="certificates",
        host=one.host,
        summary=f"certificates of {one.host} were not renewed: {summary}",
        next_step=f"gcluster ssh {cluster} {one.host} -- sudo"
        " /usr/local/libexec/gcluster/kubernetes-certificates.py --renew",
    )


def _snapshots(cluster: str, one: Keeping) -> Cause | None:
    due = one.due is not None and one.now - one.due > LATE_S
    behind = due and (one.snapshot is None or one.snapshot < (one.due or 0.0))
    if one.timer == "active" and not behind:
        return None
    made = "none was made" if one.snapshot is None else f"{_hours(one.now - one.snapshot)} old"
    why = "the last one failed" if one.timer == "active" else f"its timer is {one.timer or 'gone'}"
    return Cause(
        kind="etcd-snapshot",
        host=one.host,
        summary=f"etcd on {one.host} is not saved: {why}, the newest snapshot: {made}",
        next_step=f"gcluster ssh {cluster} {one.host} -- journalctl -u kubernetes-snapshot",
    )


def _room(cluster: str, one: Keeping) -> Cause | None:
    if one.size is None or not one.quota or one.size <= FULLEST * one.quota:
        return None
    return Cause(
        kind="etcd-size",
        host=one.host,
        summary=f"etcd on {one.host} has {one.size / one.quota:.0%} of its quota of "
        f"{one.quota / 2**30:.0f} GiB; when it is full nothing can be changed any more",
        next_step=f"gcluster ssh {cluster} {one.host} -- sudo"
        " /usr/local/libexec/gcluster/kubernetes-defragment.sh; then find what makes so much",
    )


def _condition(name: str, causes: list[Cause], fine: str) -> Condition:
    if not causes:
        return Condition(name=name, status="true", reason=fine)
    return Condition(name=name, status="false", reason="; ".join(c.summary for c in causes))


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.0f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"  # noqa: PLR2004  # an hour


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
