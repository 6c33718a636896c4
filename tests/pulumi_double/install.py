"""Puts the double in the place of the command `pulumi`, for a test, and reads what it left."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_CHECKOUT = Path(__file__).parents[2]
_SCRIPT = """\
#!{python}
# This is a double of the command pulumi, for tests; see tests/pulumi_double in gcluster's checkout.
import sys
from pathlib import Path

sys.path.insert(0, {checkout!r})
from tests.pulumi_double.command import main

sys.exit(main(sys.argv[1:], Path(__file__).resolve().parent.parent))
"""


class PulumiDouble:
    """An installed double: put `bin` on PATH, or give `root` to the SDK's PulumiCommand."""

    def __init__(self, root: Path, *, cloud: str = "invented", **settings: Any) -> None:
        """Install it; `settings` are for the cloud behind it."""
        self.root, self.bin = root, root / "bin"
        self.bin.mkdir(parents=True, exist_ok=True)
        (root / "double.json").write_text(json.dumps({"cloud": cloud, **settings}))
        script = self.bin / "pulumi"
        script.write_text(_SCRIPT.format(python=sys.executable, checkout=str(_CHECKOUT)))
        script.chmod(0o755)

    def things(self) -> dict[str, dict[str, Any]]:
        """Return what exists in the invented cloud: "TYPE ID" -> type, urn, inputs, outputs."""
        file = self.root / "cloud.json"
        found: dict[str, dict[str, Any]] = {}
        if file.exists():
            found = json.loads(file.read_text(encoding="utf-8"))["by_id"]
        return found

    def plant(self, *faults: dict[str, Any]) -> None:
        """Let things go wrong; see `faults`."""
        (self.root / "faults.json").write_text(json.dumps(faults), encoding="utf-8")

    def struck(self) -> list[str]:
        """Return the faults that happened."""
        file = self.root / "struck.txt"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
