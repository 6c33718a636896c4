"""Ranks on the node really find and reach each other."""

from __future__ import annotations

from testinfra.host import Host

SUM_OF_RANKS = "from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.size, c.allreduce(c.rank))"


def test_three_ranks_add_their_numbers(host: Host) -> None:
    printed = host.check_output(
        "runuser -u nobody -- env --chdir=/tmp HOME=/tmp OMPI_MCA_mpi_yield_when_idle=1"
        f" mpirun --oversubscribe -n 3 python3 -c '{SUM_OF_RANKS}'"
    )
    assert printed.splitlines() == ["3 3"] * 3


def test_open_mpi_was_built_with_pmix(host: Host) -> None:
    assert "pmix" in host.check_output("ompi_info --all --parsable").lower()


def test_ranks_do_not_race_each_other_through_the_start(host: Host) -> None:
    settings = host.check_output("ompi_info --all --parsable").splitlines()
    assert any(":pmix_base_async_modex:value:true" in line for line in settings)
