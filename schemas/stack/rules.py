"""Rules that cut across tested sets: minimums, equal versions, package names, kernels, skews."""

from __future__ import annotations

from collections.abc import Mapping

from .lock import Equal, Lock, Minimum, Skew, When, fits, older, release
from .need import Need


def broken_minimums(versions: Mapping[str, str], need: Need, lock: Lock) -> tuple[Minimum, ...]:
    """Return the minimums that these versions don't reach on such nodes."""
    return tuple(
        minimum
        for minimum in lock.minimums
        if minimum.component in versions
        and _applies(minimum.when, versions, need, lock)
        and need.uses(lock.component(minimum.component).part)
        and older(versions[minimum.component], minimum.at_least)
    )


def _applies(when: When, versions: Mapping[str, str], need: Need, lock: Lock) -> bool:
    if when.gpu is not None:
        return when.gpu == need.gpu
    return need.uses(lock.component(when.component or "").part) and when.holds(versions)


def broken_equals(versions: Mapping[str, str], need: Need, lock: Lock) -> tuple[Equal, ...]:
    """Return the pairs that differ though they must not, where the nodes certainly have both."""
    if need.nvswitch is not True:
        return ()
    return tuple(
        equal
        for equal in lock.equals
        if equal.component in versions
        and equal.to in versions
        and not fits(versions[equal.component], versions[equal.to])
    )


def kernel_series(lock: Lock, component: str, provider: str, distribution: str) -> tuple[str, ...]:
    """Return the kernels a component has modules for; empty: not known."""
    for kernels in lock.kernels:
        if (kernels.component, kernels.provider, kernels.distribution) == (
            component,
            provider,
            distribution,
        ):
            return tuple(kernels.series)
    return ()


def behind(skew: Skew, node: str, control: str) -> int | None:
    """Return how many releases a node is behind the control plane, negative when ahead.

    None when a version doesn't say its release, or the release isn't known.
    """
    mine, its = release(node), release(control)
    if mine is None or its is None:
        return None
    if skew.releases:
        if mine not in skew.releases or its not in skew.releases:
            return None
        return skew.releases.index(its) - skew.releases.index(mine)
    (node_major, node_minor), (major, minor) = (_numbers(mine), _numbers(its))
    return minor - node_minor if major == node_major else None


def window(skew: Skew, control: str) -> int:
    """Return how many releases nodes may be behind a control plane of this version."""
    reached = [w.behind for w in skew.windows if w.from_ is None or not older(control, w.from_)]
    return reached[-1] if reached else skew.windows[0].behind


def _numbers(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor) if minor.isdigit() else -1
