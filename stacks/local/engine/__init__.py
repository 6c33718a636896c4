"""The container engine of a local site: podman, or docker."""

from .docker import DockerEngine, find_engine
from .podman import (
    INSTALL_ENGINE,
    Container,
    Engine,
    EngineFacts,
    Network,
    Volume,
    label_filters,
    runtime_flags,
)

__all__ = [
    "INSTALL_ENGINE",
    "Container",
    "DockerEngine",
    "Engine",
    "EngineFacts",
    "Network",
    "Volume",
    "find_engine",
    "label_filters",
    "runtime_flags",
]
