"""Print the name of the image that role scenarios start from; build it where it is missing.

It is the base image of local nodes (nothing of what the roles install is there yet) with the
distribution's package lists as they are today, and gpg, which signs the doubles of vendors'
packages: dozens of scenarios would else each fetch both.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

from gcluster.lifecycle.cluster import places
from gcluster.stacks.local.engine import Engine, find_engine
from gcluster.stacks.local.image.base_image import BOOT_FLAGS, ensure_base
from gcluster.stacks.provider import ProviderError

NAME = "localhost/gcluster/scenarios"
PREPARE = (
    "apt-get update --error-on=any --quiet && "
    "apt-get install --yes --quiet --no-install-recommends gpg gpg-agent gpgconf && "
    "rm -f /var/cache/apt/archives/*.deb"
)
BUILD_LIMIT_S = 600


def main() -> int:
    """Build or find the image; say why it can't be had."""
    try:
        engine = find_engine()
        base = ensure_base(engine, places.private_directory(places.cache_home()))
        print(prepared(engine, base))
    except ProviderError as error:
        for found in error.diagnostics:
            print(f"{found.code}: {found.summary}\n{found.hint}", file=sys.stderr)
        return 1
    return 0


def prepared(engine: Engine, base: str) -> str:
    """Return the image for today; make it where it is missing."""
    reference = f"{NAME}:{base.rpartition(':')[2]}-{datetime.now(UTC):%Y%m%d}"
    if engine.has_image(reference):
        return reference
    builder = f"gcluster-scenarios-{os.getpid()}"
    flags = engine.system_container_flags()
    run = ["run", *flags, "--name", builder, base, "/bin/sh", "-c", PREPARE]
    try:
        engine.call(*run, timeout_s=BUILD_LIMIT_S)
        engine.call("commit", "--quiet", *BOOT_FLAGS, builder, reference, timeout_s=BUILD_LIMIT_S)
    finally:
        engine.remove([builder])
    return reference


if __name__ == "__main__":
    sys.exit(main())
