"""What recording a Pulumi program costs: a process, a machine more, and the growth up to 1,000.

Each size is recorded in a process of its own, as `gcluster plan` would; the recording itself is
timed apart from the imports. `--gc` leaves the garbage collector on, to show what that costs.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

SIZES = (1, 16, 64, 250, 1000)


def one(machines: int, *, collect: bool) -> dict[str, float]:
    """Record a network and `machines` EC2 machines twice: applied and as a preview."""
    start = time.perf_counter()
    import pulumi_aws as aws  # noqa: PLC0415  # timed

    from gcluster.stacks.pulumi.component import tag_everything  # noqa: PLC0415  # timed
    from gcluster.stacks.pulumi.names import Labels  # noqa: PLC0415  # timed
    from gcluster.stacks.pulumi.recording import record  # noqa: PLC0415  # timed

    aws.ec2.Instance  # noqa: B018  # the SDK loads the module when it is first touched
    labels = Labels(cluster="bench", site="east", spec_hash="0a1b2c3d")

    def program() -> None:
        tag_everything(labels)
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
        subnet = aws.ec2.Subnet("compute", vpc_id=vpc.id, cidr_block="10.0.0.0/20")
        for number in range(machines):
            aws.ec2.Instance(
                f"gpu-{number}", ami="ami-0", instance_type="p5.48xlarge", subnet_id=subnet.id
            )

    if collect:
        record.gc.disable = lambda: None  # type: ignore[attr-defined]
    imported = time.perf_counter()
    graph = record.record(program, project="bench", stack="east")
    applied = time.perf_counter()
    record.record(program, project="bench", stack="east", preview=True)
    both = time.perf_counter()
    return {
        "import": imported - start,
        "applied": applied - imported,
        "preview": both - applied,
        "each_ms": (applied - imported) * 1000 / len(graph.resources),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Print a table, or with --one the numbers of one size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int)
    parser.add_argument("--gc", action="store_true")
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(one(given.one, collect=given.gc)))
        return
    print("machines  import s  applied s  preview s  ms each  memory MB")
    totals: dict[int, float] = {}
    for size in SIZES:
        command = [sys.executable, "-m", "bench.record_pulumi", "--one", str(size)]
        command += ["--gc"] if given.gc else []
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seen: dict[str, float] = json.loads(done.stdout)
        totals[size] = seen["applied"]
        print(
            f"{size:8}  {seen['import']:8.2f}  {seen['applied']:9.2f}  {seen['preview']:9.2f}"
            f"  {seen['each_ms']:7.1f}  {seen['memory_mb']:9.0f}"
        )
    low, high = 64, SIZES[-1]
    exponent = math.log(totals[high] / totals[low]) / math.log(high / low)
    print(f"growth from {low} to {high} machines: exponent {exponent:.2f} (1 is linear)")


if __name__ == "__main__":
    main()
