"""Is the fabric still as fast as it was certified? What the log says of its AllReduces (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from ..state import Event, SmokeFinished, SpecApplied
from .values import Drift

TOLERANCE = 0.1
"""Share of the certified bandwidth that may be missing: runs of a healthy fabric differ by some
per cent, and a rail of eight that is gone by more."""


def bandwidth_drift(cluster: str, events: Iterable[Event]) -> tuple[Drift, ...]:
    """Compare the newest AllReduce with the one that the cluster went live with.

    What it went live with is the last that passed before the spec counted as applied. Nothing is
    said where there is no later one, or none was measured in the unit of the certificate.
    """
    certified: SmokeFinished | None = None
    passed: SmokeFinished | None = None
    newest: tuple[SmokeFinished, str, str] | None = None
    for event in events:
        if isinstance(event.body, SmokeFinished):
            newest = event.body, event.time.strftime("%Y-%m-%dT%H:%M:%SZ"), event.actor
            passed = event.body if event.body.verdict == "pass" else passed
        elif isinstance(event.body, SpecApplied):
            certified, newest = passed, None
    if certified is None or newest is None:
        return ()
    last, when, who = newest
    slow = (
        last.busbw is not None
        and certified.busbw is not None
        and last.busbw < certified.busbw * (1 - TOLERANCE)
    )
    if last.verdict == "pass" and not slow:
        return ()
    return (
        Drift(
            plane="fabric",
            where=cluster,
            kind="bandwidth",
            name="AllReduce",
            was=_figure(certified),
            now=_figure(last) + ("" if last.verdict == "pass" else f", {last.verdict}"),
            when=when,
            who=who,
            hint=f"gcluster smoke {cluster} names the node, rail or link",
        ),
    )


def _figure(smoke: SmokeFinished) -> str:
    return "not measured" if smoke.busbw is None else f"{smoke.busbw:.4g} GB/s"
