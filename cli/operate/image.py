"""`gcluster image`: the install phases of roles, in an image before nodes boot from it."""

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.images.ahead import make_images
from ..console import stdout
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.operate.operations import images_text
from ..render.progress import open_progress


def command(
    cluster: Target,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write the install phases of each pool as DIR/POOL/install.yml too: nodes of an "
            "image on which a builder of yours ran it skip them.",
        ),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Build images with the roles already installed.

    Nodes boot from them. Local sites are baked here, and `up` starts nodes from the image. Images
    of clouds are made by a builder of your own with the playbooks of --out. Exit code 4 when no
    site bakes.
    """
    opened = open_cluster(cluster)
    with open_progress(fmt.value) as report:
        images = make_images(opened, report, out=out)
    answer(fmt, images, lambda: images_text(images, stdout()))
    return Exit.OK
