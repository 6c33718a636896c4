"""Whether every rail of every node carried its part, by the ports' own counters.

NVLink hides dead rails: two nodes are as fast without three of eight, and 64 nodes stay above a
floor without one. What a rail must have carried follows from the messages. An AllReduce of S bytes
sends 2 (n-1)/n S out of each node in a ring; in a double tree 2 S, but S at its roots and on two
nodes; S where switches reduce (SHARP). So S, divided by the rails, is the least, and a quarter of
that is a bound that no healthy rail is below: channels take turns on the NICs, and a leaf of one of
the two trees sends half of the mean. A dead rail carries nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from ....schemas.derived.hostlist import fold
from ..reading.log import AllReduceLog, Rail
from .verdict import Code, Expectation, Rails, Reason, Warned

LEAST_SHARE = 0.25
"""Of what an equal part of the least is."""
SPEED_SHARE = 0.99
"""Of a link's speed, for rates are printed in round figures."""
_SHOWN = 20


class RailFindings:
    """What the counters of one run prove."""

    def __init__(self, log: AllReduceLog, expected: Expectation) -> None:
        """Compare what was counted with what the messages must have put on each rail."""
        self.bad: dict[tuple[str, str], tuple[Code, str]] = {}
        self.uncounted = ""
        self.proven = ""
        wanted, nodes = expected.rails, expected.node_count or len({r.host for r in log.ranks})
        if wanted is None or nodes <= 1:
            return
        if wanted.uncounted:
            self.uncounted = wanted.uncounted
            return
        by_host = _by_host(log.rails, wanted)
        silent = _silent_hosts(by_host, log, expected)
        if silent:
            self.uncounted = f"no counters of {fold(silent)}"
            return
        runs = expected.iterations or (log.options.iterations if log.options else None) or 0
        volume = expected.groups * sum(
            row.size * runs * (1 if row.in_place == row.out_of_place else 2) for row in log.rows
        )
        if not volume or not by_host:
            self.uncounted = "no port was counted" if volume else "how much was sent isn't known"
            return
        self._compare(by_host, wanted, volume)

    def _compare(
        self, by_host: Mapping[str, Mapping[str, Rail]], wanted: Rails, volume: int
    ) -> None:
        count = wanted.count or _usual_count(by_host)
        equal = volume / wanted.domain_nodes / count
        least = LEAST_SHARE * equal
        carrying = {
            host: {name for name, rail in rails.items() if (_carried(rail) or 0) >= least}
            for host, rails in by_host.items()
        }
        often = Counter(name for names in carrying.values() for name in names)
        named = wanted.devices or tuple(n for n, hosts in often.items() if 2 * hosts > len(by_host))
        for host, rails in by_host.items():
            lacking = count - len(carrying[host])
            if lacking > 0:
                silent = [name for name in (*named, *_fastest(rails)) if name not in carrying[host]]
                for name in list(dict.fromkeys(silent))[:lacking]:
                    self.bad[host, name] = "dead-rail", _dead(rails.get(name), least)
            for name in sorted(carrying[host]):
                gbps = rails[name].gbps
                if gbps is not None and gbps < SPEED_SHARE * wanted.gbps:
                    what = f"runs at {gbps:g} Gb/s, not {wanted.gbps:g}"
                    self.bad[host, name] = "slow-rail", what
        if not self.bad:
            part = min(
                (_carried(by_host[host][name]) or 0) / equal
                for host, names in carrying.items()
                for name in names
            )
            self.proven = (
                f"each of {count} rails on {len(by_host)} nodes carried its part, as its counters"
                f" say (the least {part:.2f} of an equal one)"
            )


def _by_host(rails: tuple[Rail, ...], wanted: Rails) -> dict[str, dict[str, Rail]]:
    """Return host -> device -> what it carried, of the devices that may be rails."""
    found: defaultdict[str, dict[str, Rail]] = defaultdict(dict)
    for rail in rails:
        name = rail.device.removesuffix("/1").removesuffix("/0")
        fits = rail.layer == wanted.layer if wanted.layer else rail.layer != "socket"
        if fits and (not wanted.devices or name in wanted.devices):
            found[rail.host][name] = rail
    return dict(found)


def _silent_hosts(
    by_host: Mapping[str, Mapping[str, Rail]], log: AllReduceLog, expected: Expectation
) -> list[str]:
    """Return the hosts of which too few ports could be read for a result."""
    count = expected.rails.count if expected.rails else 0
    hosts = expected.nodes or sorted({rank.host for rank in log.ranks})
    listed = {host.partition(".")[0]: rails for host, rails in by_host.items()} | dict(by_host)

    def is_silent(host: str) -> bool:
        rails = listed.get(host) or listed.get(host.partition(".")[0]) or {}
        unknown = [rail for rail in rails.values() if _carried(rail) is None]
        counted = len(rails) - len(unknown)
        return not counted or counted < count <= len(rails)

    return [host for host in hosts if is_silent(host)]


def _fastest(rails: Mapping[str, Rail]) -> list[str]:
    """Return the devices by their links' speed: a slower one is more likely no rail."""
    return sorted(rails, key=lambda name: -(rails[name].gbps or 0))


def _usual_count(by_host: Mapping[str, Mapping[str, Rail]]) -> int:
    """Return how many ports of a node carry messages, on most nodes; 1 at least."""
    counts = Counter(
        sum(bool(_carried(rail)) for rail in rails.values()) for rails in by_host.values()
    )
    return max(1, counts.most_common(1)[0][0])


def _carried(rail: Rail) -> int | None:
    """Return the bytes of the direction that carried less; None: unknown."""
    return None if rail.sent is None or rail.received is None else min(rail.sent, rail.received)


def _dead(rail: Rail | None, least: float) -> str:
    if rail is None:
        return "is not there"
    if rail.sent is None or rail.received is None:
        return "can't be counted"
    gigabytes = f"{rail.sent / 1e9:.3g} GB and received {rail.received / 1e9:.3g}"
    return f"sent {gigabytes}, at least {least / 1e9:.3g} GB each way had to pass it"


def rail_reasons(findings: RailFindings) -> Iterator[Reason]:
    """Yield reasons against a pass: each rail by its node and name."""
    for number, ((host, name), (code, what)) in enumerate(findings.bad.items()):
        if number == _SHOWN:
            more = len(findings.bad) - _SHOWN
            yield Reason(code=code, message=f"and {more} more rails")
            return
        yield Reason(code=code, message=f"rail {name} of {host} {what}")


def rail_remarks(findings: RailFindings) -> Iterator[Warned]:
    """Report that nothing is known of the single rails, and why."""
    if findings.uncounted:
        text = f"what each rail carried is not proven: {findings.uncounted}"
        yield Warned(code="rails-not-counted", message=text)
