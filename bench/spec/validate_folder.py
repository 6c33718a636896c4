"""How long `gcluster validate FOLDER` takes on a folder of 200 specs, in a cold process."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from ..timing import Result, arguments, cpu_seconds, fitted_exponent, interleaved, report

ROUNDS = 5
SPECS = 200
FEWER = 50
SECONDS = 5.0


def spec(number: int) -> str:
    """Return a spec of four pools with a network and hosts that no other has."""
    hosts = "\n".join(
        f"      - {{name: c{number:03d}n{n:02d}, address: 10.{number}.0.{n}}}" for n in range(1, 33)
    )
    return f"""apiVersion: gcluster/v1
name: cluster{number:03d}
sites:
  room: {{provider: bare-metal, ssh: {{user: ops, key: ~/.ssh/id_ed25519}}}}
  lab: {{provider: local, network: {{cidr: 10.210.{number}.0/24}}}}
pools:
  head: {{site: room, role: controller, hosts: c{number:03d}head}}
  login: {{site: room, role: login, hosts: "c{number:03d}login[1-2]"}}
  train:
    site: room
    machine: dgx-h100
    quorum: 30
    hosts:
{hosts}
  try: {{site: lab, machine: sim.h100x8, count: 2}}
scheduler:
  type: slurm
  partitions:
    train: {{pools: [train], default: true, max_time: 7d}}
    try: {{pools: [try], max_time: 1h}}
users:
  - {{name: ada, uid: 2001, keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA ada@example.org]}}
"""


def _on_core(gcluster: str, folder: str) -> float:
    return min(cpu_seconds([gcluster, "validate", folder]) for _ in range(ROUNDS))


def main() -> int:
    """Write the folder and measure."""
    options = arguments(__doc__ or "").parse_args()
    gcluster = shutil.which("gcluster", path=str(Path(sys.executable).parent))
    if gcluster is None:
        sys.exit("gcluster is not installed for this Python: run make setup")
    on_core = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(SPECS):
            if number == FEWER:
                on_core[FEWER] = _on_core(gcluster, folder)
            Path(folder, f"cluster{number:03d}.yaml").write_text(spec(number), encoding="utf-8")
        on_core[SPECS] = _on_core(gcluster, folder)
        name = f"gcluster validate FOLDER, {SPECS} specs"
        medians = interleaved({name: [gcluster, "validate", folder]}, ROUNDS)
    results = [
        Result(name=name, value=medians[name], unit="s", limit=SECONDS),
        Result(name="exponent over specs", value=fitted_exponent(on_core), unit="", limit=1.15),
    ]
    return report(
        f"a folder of specs, median of {ROUNDS}",
        results,
        as_json=options.json,
        ratios=options.ratios,
    )


if __name__ == "__main__":
    sys.exit(main())
