"""Releases of Kubernetes by their minor version, and what came with which."""

from __future__ import annotations

import re

DEFAULT_RELEASE = "1.35"
"""Release of clusters whose spec says none and whose nodes no tested set fits (local nodes)."""
OLDEST = "1.31"
"""kubeadm's configuration v1beta4, which nodes are set up by, came with it (kubernetes.io, kubeadm
configuration v1beta4; read 2026-11)."""
CLAIMS_SINCE = "1.34"
"""DynamicResourceAllocation is stable (resource.k8s.io/v1) from here on. Source: Kubernetes
enhancement 4381, stable in 1.34 (kubernetes/enhancements, read 2026-11)."""
MUTATING_POLICY_SINCE = "1.36"
"""MutatingAdmissionPolicy is stable from here on. Source: Kubernetes enhancement 3962, kep.yaml:
beta in 1.34 and off by default, stable in 1.36 (kubernetes/enhancements, read 2026-11)."""

_MINOR = re.compile(r"^v?(\d+)\.(\d+)")


def release_of(version: str | None) -> str | None:
    """Return the minor release of a version, "1.35" of "1.35.4"; None for "auto" and no version."""
    found = _MINOR.match(version or "")
    return f"{found[1]}.{found[2]}" if found else None


def has(release: str, since: str) -> bool:
    """Say whether a release is that one or a later one."""
    return _numbers(release) >= _numbers(since)


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]
