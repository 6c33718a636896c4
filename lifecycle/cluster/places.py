"""Where this machine keeps what belongs to clusters but not in their state: keys, caches, an index.

Follows the XDG base directory specification: data for working directories and the index of known
clusters, cache for images, both removable without losing a cluster's state.
"""

from __future__ import annotations

import os
from pathlib import Path


def _base(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable, "")
    return (Path(value) if value.startswith("/") else Path.home() / fallback) / "gcluster"


def data_home() -> Path:
    """Return the directory of the index and of the clusters' working directories."""
    return _base("XDG_DATA_HOME", ".local/share")


def cache_home() -> Path:
    """Return the cache directory: images, by the hash of their inputs."""
    return _base("XDG_CACHE_HOME", ".cache")


def config_home() -> Path:
    """Return the directory of the age identities that gcluster made."""
    return _base("XDG_CONFIG_HOME", ".config")


def work_path(cluster_id: str) -> Path:
    """Return where a cluster's client keys and known hosts lie."""
    return data_home() / "work" / cluster_id


def run_path(cluster_id: str, run: str = "") -> Path:
    """Return where the artifacts of a run lie; "": those of all runs of the cluster."""
    return data_home() / "runs" / cluster_id / run


def private_directory(path: Path) -> Path:
    """Make `path` (and its parents) with mode 0700 where it is missing; return it."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path
