"""Run the benchmarks one after the other: `make bench`; `--write` puts their figures into the docs.

README.md has the rows of `IN_README`, docs/benchmarks.md all of them, each between two markers. A
figure of a benchmark that was not run stays as it was.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
QUICK = (
    "spec.validate_cold",
    "spec.validate_folder",
    "spec.validate_errors",
    "spec.scale",
    "smoke_log",
    "burst_simulate",
    "size.speed",
    "simulated.up",
    "simulated.dashboard",
)
WITH_NODES = ("nodes.local_up", "nodes.join", "nodes.drift", "nodes.launch", "nodes.recovery")
IN_README = {
    "gcluster validate examples/local.yaml": "`gcluster validate` on a small spec, cold process",
    "validate / hello": "the same, against a bare typer program in the same run",
    "10,000 hosts: all": "load, check and compile 10,000 bare-metal hosts",
    "up, 1+4 nodes, AllReduce passed": "local 1+4 nodes: nothing to a passed AllReduce",
    "up again, nothing to do": "`up` again with nothing to do",
}
"""Figure -> what the README calls it."""
KEPT = HERE / "figures.json"
"""The figures that the docs show, as they were measured: benchmark -> its report."""


def measure(name: str, *, ratios: bool) -> tuple[dict[str, Any], bool]:
    """Run one benchmark; return its report and whether it kept its limits.

    Raises:
        ValueError: it printed no report.
    """
    command = [sys.executable, "-m", f"bench.{name}", "--json", *(["--ratios"] * ratios)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise ValueError(f"{name} failed with exit code {done.returncode}: {done.stdout}") from None
    return found, done.returncode == 0


def path_of(name: str) -> str:
    """Return where a benchmark is, for the docs."""
    return f"bench/{name.replace('.', '/')}.py"


def shown(result: dict[str, Any], *, limit: bool = False) -> str:
    """Return a figure or its limit with its unit, as a cell of a table."""
    value = result["limit" if limit else "value"]
    if value is None:
        return "-"
    unit = {"x": " times", "": ""}.get(result["unit"], f" {result['unit']}")
    return f"{value:,.2f}".rstrip("0").rstrip(".") + unit


def table(rows: list[tuple[str, dict[str, Any]]]) -> str:
    """Return a table of figures in Markdown."""
    head = "| what | measured | limit |\n| --- | --- | --- |\n"
    return head + "".join(f"| {name} | {shown(r)} | {shown(r, limit=True)} |\n" for name, r in rows)


def put(page: Path, text: str) -> None:
    """Replace what is between the page's two markers."""
    before = page.read_text(encoding="utf-8")
    marked = re.compile(r"(<!-- figures: .*? -->\n).*?(<!-- end of figures -->)", re.DOTALL)
    after, count = marked.subn(lambda m: f"{m[1]}{text}{m[2]}", before)
    if count != 1:
        raise ValueError(f"{page.name} must have the markers of its figures once, has {count}")
    page.write_text(after, encoding="utf-8")


def write(reports: dict[str, dict[str, Any]]) -> None:
    """Store the reports with those of earlier runs and write the figures into the docs."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    kept |= {name: {"date": day, **found} for name, found in reports.items()}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    figures = {r["name"]: r for found in kept.values() for r in found["results"]}
    put(
        ROOT / "README.md",
        table([(IN_README[name], figures[name]) for name in IN_README if name in figures]),
    )
    blocks = [
        f"**{found['benchmark']}** (`{path_of(name)}`, {found['date']}, {found['machine']})\n\n"
        + table([(r["name"], r) for r in found["results"]])
        for name, found in kept.items()
    ]
    put(ROOT / "docs" / "benchmarks.md", "\n".join(blocks))


def main() -> int:
    """Run them all, also when one is over its limit; return 1 when one was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks to run; default: the quick ones")
    parser.add_argument("--nodes", action="store_true", help="also those that start local nodes")
    parser.add_argument("--ratios", action="store_true", help="judge exponents and ratios only")
    parser.add_argument("--write", action="store_true", help="write the figures into the docs")
    options = parser.parse_args()
    names = options.names or [*QUICK, *(WITH_NODES if options.nodes else ())]
    reports, over = {}, []
    for name in names:
        found, is_ok = measure(name, ratios=options.ratios)
        reports[name] = found
        print(f"{found['benchmark']}   ({found['machine']})")
        for result in found["results"]:
            verdict = "" if result["limit"] is None else ("ok" if result["ok"] else "OVER")
            print(f"  {result['name']:<56} {shown(result):>12}   {verdict}")
        sys.stdout.flush()
        if not is_ok:
            over.append(name)
    if options.write:
        write(reports)
    if over:
        print(f"over a limit: {', '.join(over)}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
