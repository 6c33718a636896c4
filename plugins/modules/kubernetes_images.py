#!/usr/bin/python
"""Import the images of an archive that containerd lacks, and keep the kubelet from removing them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_images
short_description: Import the images of an archive into containerd
description:
  - Imports the archive where containerd lacks one of its images or has another one of that name.
  - Imported images are pinned, so that the kubelet does not remove them for room.
author: The gcluster authors
options:
  archive:
    description: OCI archive on the node.
    type: path
    required: true
attributes:
  check_mode: {support: full, description: Says which images would be imported.}
"""

EXAMPLES = r"""
- name: Import the images
  gcluster.cluster.kubernetes_images: {archive: /srv/kubernetes/images.tar}
"""

RETURN = r"""
changes:
  description: Names of the images that containerd lacked.
  returned: always
  type: list
  elements: str
  sample: ["gcluster.local/k8s/pause:3.10.1"]
"""

import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import run
from ..module_utils.state import Failed, exit_with_progress

CTR = ("ctr", "--namespace", "k8s.io", "images")
IMPORT_TIMEOUT_S = 1800
PINNED = "io.cri-containerd.pinned=pinned"
DIGEST = 2
"""Column of `ctr images list`."""
ARGUMENTS: dict[str, Any] = {"archive": {"type": "path", "required": True}}


def archived_images(archive: str) -> dict[str, str]:
    """Return name -> digest of the images in an archive."""
    try:
        with tarfile.open(archive) as tar:
            index = json.load(tar.extractfile("index.json") or io.BytesIO())
    except (OSError, KeyError, tarfile.TarError, ValueError) as error:
        raise Failed(f"{archive} is no OCI archive: {error}") from error
    return {
        each["annotations"]["io.containerd.image.name"]: each["digest"]
        for each in index["manifests"]
    }


def imported_images() -> dict[str, str]:
    """Return name -> digest of the images that containerd has."""
    code, text = run(*CTR, "list")
    if code:
        raise Failed(f"containerd doesn't answer: {text}")
    rows = [line.split() for line in text.splitlines()[1:]]
    return {row[0]: row[DIGEST] for row in rows if len(row) > DIGEST}


def missing_images(archive: str) -> list[str]:
    """Return names of images that containerd lacks, or has with another digest."""
    imported = imported_images()
    return sorted(
        name for name, digest in archived_images(archive).items() if digest != imported.get(name)
    )


def import_images(archive: str, *, act: bool) -> Iterator[str]:
    """Import the archive where an image is missing; yield the names of those that were."""
    missing = missing_images(archive)
    yield from missing
    if not missing or not act:
        return
    code, text = run(*CTR, "import", archive, timeout_s=IMPORT_TIMEOUT_S)
    if code:
        raise Failed(f"containerd did not take the images: {text[-400:]}")
    # What the kubelet finds by its tag, it must not remove for room: it could not be pulled again.
    for name in missing:
        run(*CTR, "label", name, PINNED)
    if still := missing_images(archive):
        raise Failed(f"images that {archive} doesn't hold: {', '.join(still)}")


def main() -> None:
    """Import what is missing."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    exit_with_progress(module, import_images(module.params["archive"], act=not module.check_mode))


if __name__ == "__main__":
    main()
