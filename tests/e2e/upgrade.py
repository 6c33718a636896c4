"""Take over a local cluster that an older gcluster made: `make test-upgrade FROM=COMMIT`.

The older one is the wheel of that commit, run by this environment's Python and libraries. It brings
a cluster up, a job runs and one waits; then this version plans, brings the same spec up, and is
held to its promise: no job is lost, a second `up` has nothing to do, nothing drifts and `down`
leaves nothing. A state of an older format is rewritten by that `up`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from gcluster.lifecycle.state.store import FORMAT, FORMAT_KEY

from .conftest import ACCOUNTS, LiveCluster, until

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
SBATCH = (
    "cd /tmp && runuser -u ada -- sbatch --parsable --output=/dev/null --nodelist=gpu001 "
    "--exclusive --wrap 'sleep 3000'"
)
STATE = "squeue --noheader --job={} --format='%T %S'"


def wheel(commit: str, folder: Path) -> Path:
    """Build the wheel of a commit; return the folder that it is unpacked into."""
    source, built, site = folder / "source", folder / "wheel", folder / "site"
    source.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "-x"], cwd=source, check=True, input=archive.stdout)
    build = [str(PROGRAMS / "hatchling"), "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(build, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (made,) = built.glob("*.whl")
    install = [str(PROGRAMS / "uv"), "pip", "install", "--quiet", "--no-deps", "--offline"]
    install += ["--python", sys.executable, "--target", str(site), str(made)]
    subprocess.run(install, check=True)
    return site


def take_over(live: LiveCluster) -> None:
    """Plan and bring up with this version what the older one left, under a job that runs."""
    sbatch = (
        "cd /tmp && runuser -u ada -- sbatch --parsable --output=/dev/null {} --wrap 'sleep 3000'"
    )
    runs = live.on("head", sbatch.format("--nodelist=gpu001 --exclusive")).strip()
    waits = live.on("head", sbatch.format("--nodelist=gpu001 --exclusive")).strip()
    until(lambda: live.on("head", STATE.format(runs)).startswith("RUNNING"))
    before = live.on("head", STATE.format(runs))
    use_this_version(live)
    state = live.spec.parent / ".gcluster" / live.name
    if json.loads((state / FORMAT_KEY).read_bytes())["version"] != FORMAT:
        refused = live.gcluster("plan", str(live.spec), expect=1)
        assert "GC902" in refused.stdout + refused.stderr
    else:
        live.gcluster("plan", str(live.spec))
    live.gcluster("up", str(live.spec), "--yes")
    assert live.on("head", STATE.format(runs)) == before
    assert live.on("head", STATE.format(waits)).startswith("PENDING")
    live.on("head", "scancel --user=ada")
    until(lambda: not live.on("head", "squeue --noheader").strip())
    live.gcluster("up", str(live.spec), "--yes")  # the AllReduce, on the node that was busy too
    assert live.json("up", str(live.spec), "--yes")["changed"] is False
    assert live.json("drift", str(live.spec))["drifts"] == []


def use_this_version(live: LiveCluster) -> None:
    """Have the commands that follow be those of this checkout."""
    live.environment["PYTHONPATH"] = str(ROOT / "src")


def main() -> int:
    """Do it from the commit that is named; a broken promise is an AssertionError."""
    with tempfile.TemporaryDirectory() as folder:
        live = LiveCluster(Path(folder))
        live.write_spec(nodes=3)
        live.spec.write_text(
            live.spec.read_text().replace("type: slurm", f"type: slurm\n  {ACCOUNTS}")
        )
        try:
            live.environment["PYTHONPATH"] = str(wheel(sys.argv[1], Path(folder)))
            live.gcluster("up", str(live.spec), "--yes")
            take_over(live)
        finally:
            use_this_version(live)
            live.gcluster("down", str(live.spec), "--yes", expect=None)
        assert not any(live.left_behind().values()), live.left_behind()
    return 0


if __name__ == "__main__":
    sys.exit(main())
