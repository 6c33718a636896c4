"""How load, check and compile grow: ten thousand hosts, and pools that are linked to each other."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..timing import Result, arguments, fitted_exponent, report, with_bytecode
from . import generate

HOSTS = 10_000
POOLS = (100, 300, 1_000, 3_000)
ROUNDS = 3


def compile_in_this_process(spec_path: Path) -> dict[str, float]:
    """Load, check and compile one spec; return seconds of each part and the peak memory in MB.

    Imports are done before the clock starts; peak memory is the whole process's (KiB from
    getrusage, as Linux counts it).
    """
    from gcluster.inventory.compile import compile_cluster  # noqa: PLC0415  # only the worker's
    from gcluster.inventory.hosts import ClusterInventory  # noqa: PLC0415
    from gcluster.schemas.catalog import load_catalog  # noqa: PLC0415
    from gcluster.schemas.load import load  # noqa: PLC0415
    from gcluster.stacks.registry import provider  # noqa: PLC0415

    on_core = time.process_time()
    began = time.perf_counter()
    loaded = load(spec_path)
    if loaded.spec is None:
        sys.exit(f"{spec_path}: {loaded.diagnostics[0].summary}")
    spec = loaded.spec
    checked = time.perf_counter()
    hosts = tuple(
        host
        for name, site in spec.sites.items()
        for host in provider(str(site.__struct_config__.tag)).planned_hosts(spec, name)
    )
    listed = time.perf_counter()
    compile_cluster(spec, ClusterInventory(cluster=spec.name, hosts=hosts), load_catalog())
    ended = time.perf_counter()
    return {
        "load and check": checked - began,
        "hosts": listed - checked,
        "compile": ended - listed,
        "all": ended - began,
        "on a core": time.process_time() - on_core,
        "hosts counted": len(hosts),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
    }


def in_fresh_process(spec_path: Path) -> dict[str, float]:
    """Run the worker in a process of its own, so that peak memory is this spec's alone."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.spec.scale", "--worker", str(spec_path)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=with_bytecode(),
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def median_of_rounds(text: str, scratch: Path) -> dict[str, float]:
    """Return the median of each figure over a few fresh processes."""
    spec_path = scratch / "bench.yaml"
    spec_path.write_text(text, encoding="utf-8")
    rounds = [in_fresh_process(spec_path) for _ in range(ROUNDS)]
    return {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}


def main() -> int:
    """Measure both families of specs and fit the exponent."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--worker", type=Path, help="measure one spec in this process (internal)")
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(compile_in_this_process(options.worker)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        hosts = median_of_rounds(generate.bare_metal_hosts(HOSTS), Path(folder))
        pools = {n: median_of_rounds(generate.linked_pools(n), Path(folder)) for n in POOLS}
    if hosts["hosts counted"] != HOSTS + 1:  # and the controller
        sys.exit(f"{hosts['hosts counted']} hosts came out of a spec with {HOSTS + 1}")
    results = [
        Result(name=f"{HOSTS:,} hosts: {part}", value=hosts[part], unit="s")
        for part in ("load and check", "hosts", "compile")
    ]
    results += [
        Result(name=f"{HOSTS:,} hosts: all", value=hosts["all"], unit="s", limit=1.0),
        Result(name=f"{HOSTS:,} hosts: peak memory", value=hosts["peak_mb"], unit="MB", limit=300),
    ]
    results += [
        Result(
            name=f"{n:,} linked pools", value=pools[n]["all"], unit="s",
            limit=2.0 if n == 1_000 else None,  # noqa: PLR2004  # the size the README names
        )
        for n in POOLS
    ]  # fmt: skip
    exponent = fitted_exponent({n: pools[n]["on a core"] for n in POOLS})
    results.append(Result(name="exponent over pools", value=exponent, unit="", limit=1.15))
    title = f"load + check + compile, fresh processes, median of {ROUNDS}"
    return report(title, results, as_json=options.json, ratios=options.ratios)


if __name__ == "__main__":
    sys.exit(main())
