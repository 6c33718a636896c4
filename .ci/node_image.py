"""Print the name of the base image of local nodes, after building it where it is missing.

The role scenarios start from it: nothing of what the roles install is there yet.
"""

from __future__ import annotations

import sys

from gcluster.lifecycle import places
from gcluster.stacks.local.engine import find_engine
from gcluster.stacks.local.image import ensure_base
from gcluster.stacks.provider import ProviderError


def main() -> int:
    """Build or find the image; say why it can't be had."""
    try:
        print(ensure_base(find_engine(), places.private_directory(places.cache_home())))
    except ProviderError as error:
        for found in error.diagnostics:
            print(f"{found.code}: {found.summary}\n{found.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
