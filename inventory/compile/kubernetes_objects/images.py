"""Images that gcluster's own pods run: its builds on local nodes, the project's elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....schemas.derived.control_planes import has

if TYPE_CHECKING:
    from .facts import KubernetesFacts

BUILT = "gcluster.local/k8s"
"""Repository of the images that the Kubernetes bundle of local nodes has."""
PUBLISHED = "registry.k8s.io"
PAUSE = "pause:3.10.1"
"""An image with nothing a shell needs, which every node has. Tag as kubeadm 1.35.4 names it
(cmd/kubeadm/app/constants, PauseVersion; read 2026-11)."""
_PAUSE_LATER, _LATER = "pause:3.10.2", "1.36"
"""As kubeadm 1.36.1 and 1.36.3 name it."""
SIMULATED_GPU = "simulated-gpu:1"
"""Device plugin of GPUs that don't exist; only in the bundle of local nodes."""


def pause_image(facts: KubernetesFacts) -> str:
    """Return the image that holds nothing, as these nodes have it."""
    here = all(site.is_made_here for site in facts.spec.sites.values())
    if here:
        return f"{BUILT}/{PAUSE}"
    return f"{PUBLISHED}/{_PAUSE_LATER if has(facts.release, _LATER) else PAUSE}"
