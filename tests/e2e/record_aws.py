"""Record `gcluster up` on the doubles of AWS as a picture: `make pictures`.

Usage: python -m tests.e2e.record_aws OUT.svg
Starts what tests/e2e/test_aws.py starts, and removes it. Needs tmux and local nodes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .cloud_double import ROOT
from .conftest import LiveCluster
from .test_aws import Amazon


def main() -> None:
    """Bring the cluster up in a terminal, write its last screen, take everything down."""
    out = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory() as folder:
        live = LiveCluster(Path(folder))
        live.name = "aws-on-doubles"
        del live.environment["NO_COLOR"]
        live.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with Amazon(live, Path(folder)):
            record = [sys.executable, str(ROOT / "bench/record.py"), str(out)]
            subprocess.run(
                [*record, "gcluster up cluster.yaml --yes"],
                check=True,
                cwd=folder,
                env=live.environment,
            )
            live.gcluster("down", str(live.spec), "--yes")


if __name__ == "__main__":
    main()
