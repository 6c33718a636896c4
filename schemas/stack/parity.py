"""Which versions differ between two pools whose jobs move from one to the other."""

from __future__ import annotations

from ..spec import ClusterSoftware, Software

_SEEN_BY_JOBS = ("driver", "cuda", "nccl", "rocm", "rccl", "mpi", "containers", "distribution")
"""What a job is built against or started by; what drives a cloud's own fabric differs."""


def differing_versions(
    here: Software | None, there: Software | None, whole: ClusterSoftware
) -> list[str]:
    """Return what differs, as "driver 580 and 570": versions that the spec names for both.

    Args:
        here: what one pool says in addition to the cluster's software.
        there: what the other says.
        whole: the cluster's.
    """
    pairs = (
        (key, _version(here, whole, key), _version(there, whole, key)) for key in _SEEN_BY_JOBS
    )
    return [
        f"{key} {one} and {other}"
        for key, one, other in pairs
        if one != other and "auto" not in {one, other}
    ]


def _version(own: Software | None, whole: ClusterSoftware, key: str) -> str:
    """Return a pool's version: its own where it names one, else the cluster's."""
    word = "auto" if own is None else str(getattr(own, key))
    return str(getattr(whole, key)) if word == "auto" else word
