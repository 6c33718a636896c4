"""The payload passes with right numbers, over the transport it names, and fails with wrong ones."""

from __future__ import annotations

import re

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

RANKS = 3
WRONG_NUMBERS = 7  # exit status, as nccl-tests
ROW = re.compile(r"^ +(\d+) +(\d+) +float +sum +-1(.*)$", re.MULTILINE)


def run(host: Host, *arguments: str, **environment: str) -> CommandResult:
    """Run three ranks; over TCP, as between nodes, unless the test sets another transport.

    Over shared memory Open MPI 5.0 loses a message now and then and waits for ever
    (open-mpi/ompi#12979; seen here in the first AllReduce of three ranks on a busy machine), so
    only the test of shared memory uses it, and a run that hangs ends as a failure.
    """
    settings = " ".join(
        f"{name}={value}" for name, value in {"OMPI_MCA_btl": "tcp,self", **environment}.items()
    )
    return host.run(
        f"runuser -u nobody -- env --chdir=/tmp HOME=/tmp {settings}"
        f" mpirun --timeout 120 --oversubscribe -n {RANKS}"
        f" /usr/libexec/gcluster/allreduce {' '.join(arguments)}"
    )


def test_three_ranks_sum_every_size_exactly(host: Host) -> None:
    result = run(host, "--max-bytes", "2097152", "--iterations", "2")
    assert result.rc == 0, result.stderr
    rows = [(int(row[1]), row[3].split()) for row in ROW.finditer(result.stdout)]
    assert [size for size, _ in rows] == [8, 64, 512, 4096, 32768, 262144, 2097152]
    assert all(cells[3] == cells[7] == "0" for _, cells in rows)
    assert "# Out of bounds values : 0 OK" in result.stdout
    assert len(re.findall(r"^#  Rank +\d+ Group +0 Pid ", result.stdout, re.MULTILINE)) == RANKS


@pytest.mark.parametrize(
    ("allowed", "line"),
    [
        ("tcp,self", "# gcluster transport: ethernet (simulated) btl=tcp"),
        ("sm,self", "# gcluster transport: memory (simulated) btl=sm"),
    ],
)
def test_the_transport_named_is_the_one_open_mpi_was_left_with(
    host: Host, allowed: str, line: str
) -> None:
    # Ranks that start without waiting for each other (role mpi) find no way but TCP to a late one.
    together = {"OMPI_MCA_pmix_base_async_modex": "0"}
    result = run(host, "--max-bytes", "64", OMPI_MCA_btl=allowed, **together)
    assert line in result.stdout.splitlines(), result.stderr
    assert "mca: bml" not in result.stdout + result.stderr


def test_one_corrupted_element_is_counted_on_every_rank_and_fails(host: Host) -> None:
    result = run(host, "--max-bytes", "64", GCLUSTER_ALLREDUCE_CORRUPT="1")
    cells = [row[3].split() for row in ROW.finditer(result.stdout)]
    assert [(row[3], row[7]) for row in cells] == [(str(RANKS), str(RANKS))] * 2
    assert f"# Out of bounds values : {4 * RANKS} FAILED" in result.stdout
    assert result.rc == WRONG_NUMBERS


def test_ranks_that_slurm_started_but_mpi_does_not_have_are_a_failure(host: Host) -> None:
    result = run(host, SLURM_STEP_NUM_TASKS="4")
    assert result.rc == 1
    assert "MPI has 3 of the 4 ranks that were started" in result.stderr
    assert not ROW.search(result.stdout)
