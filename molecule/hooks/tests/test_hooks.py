"""Programs of hooks run around jobs in their order, scripts run with what they were given."""

from __future__ import annotations

from conftest import Play
from testinfra.host import Host

PROGRAMS = "/usr/local/libexec/gcluster"
REFUSED, FAILED = 3, 4
"""What the scenario's second prolog and first epilog end with."""


def test_prologs_run_in_their_order_and_the_first_that_fails_ends_it(host: Host) -> None:
    host.run("rm -f /run/prologs /run/refuse")
    assert host.run(f"env -i {PROGRAMS}/run-prologs.sh").rc == 0
    assert host.file("/run/prologs").content_string == "one\ntwo\n"
    host.run("touch /run/refuse")
    assert host.run(f"env -i {PROGRAMS}/run-prologs.sh").rc == REFUSED
    assert host.file("/run/prologs").content_string == "one\ntwo\none\n"


def test_every_epilog_runs_though_one_fails_and_slurm_is_notified(host: Host) -> None:
    host.run("rm -f /run/epilogs")
    assert host.run(f"env -i {PROGRAMS}/run-epilogs.sh").rc == FAILED
    assert host.file("/run/epilogs").content_string == "two\n"


def test_a_script_runs_with_its_arguments_its_environment_and_its_secrets(host: Host) -> None:
    assert host.file("/run/greeting").content_string == "two words gpu 14\n"


def test_a_program_of_a_hook_that_is_gone_goes(host: Host, converge: Play) -> None:
    host.run(f"cp /bin/true {PROGRAMS}/hooks/prolog.d/009-old")
    assert converge(phases=["configure"]).returncode == 0
    assert not host.file(f"{PROGRAMS}/hooks/prolog.d/009-old").exists


def test_nothing_runs_around_jobs_where_the_spec_has_no_hooks(host: Host, converge: Play) -> None:
    assert converge(phases=["remove"]).returncode == 0
    assert host.run(f"ls {PROGRAMS}/run-prologs.sh {PROGRAMS}/hooks/prolog.d").rc != 0
    assert converge().returncode == 0
