"""Names of container images, which people write short: with their registry and their tag (pure)."""

from __future__ import annotations

_LATEST = "latest"


def full_name(image: str) -> str:
    """Return an image with registry and tag: many charts leave Docker's own registry out.

    Args:
        image: without a digest: "busybox", "rancher/local-path-provisioner:v0.0.33".
    """
    path, tag = split_tag(image)
    first, slash, rest = path.partition("/")
    if not slash:
        path = f"docker.io/library/{path}"
    elif first == "docker.io" and "/" not in rest:
        path = f"docker.io/library/{rest}"
    elif not ("." in first or ":" in first or first == "localhost"):
        path = f"docker.io/{path}"
    return f"{path}:{tag}"


def split_tag(image: str) -> tuple[str, str]:
    """Return what stands before an image's tag, and the tag: "latest" where none is said."""
    path, colon, tag = image.rpartition(":")
    return (path, tag) if colon and "/" not in tag else (image, _LATEST)
