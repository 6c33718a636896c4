"""Module and library in one version, loaded only where no job can feel it."""

from __future__ import annotations

from conftest import Play, Recorded
from testinfra.host import Host

MODULE = "/srv/node/sys/module/gdrdrv"


def test_module_and_library_have_one_version_and_are_held(host: Host) -> None:
    assert host.package("gdrdrv-dkms").version == "2.5.2-1"
    assert host.package("libgdrapi").version == "2.5.2-1"
    assert {"gdrdrv-dkms", "libgdrapi"} <= set(host.check_output("apt-mark showhold").split())


def test_a_module_without_its_library_is_never_installed(host: Host, converge: Play) -> None:
    run = converge(version="2.6")
    assert run.returncode != 0
    assert "no libgdrapi 2.6[-.]* in the node's repositories; they have 2.5.2-1" in run.printed
    assert host.package("gdrdrv-dkms").version == "2.5.2-1"
    assert converge(phases=["verify"]).returncode == 0


def test_a_module_that_the_driver_does_not_fit_is_reported(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    host.check_output(f"mv {MODULE} {MODULE}.away")
    with recorded("wrong-driver"):
        run = converge(phases=["join"])
        verify = converge(phases=["verify"])
    host.check_output(f"mv {MODULE}.away {MODULE}")
    assert run.returncode != 0
    assert "Unknown symbol in module" in run.printed
    assert "gdrdrv isn't loaded" in verify.printed
    assert converge().returncode == 0


def test_a_running_module_is_not_changed_under_a_job(host: Host, converge: Play) -> None:
    host.check_output(f"echo 2.4.1 > {MODULE}/version")
    host.check_output("cp /bin/sleep /tmp/slurmstepd")
    host.check_output("systemd-run --unit=a-job /tmp/slurmstepd infinity")
    try:
        run = converge(phases=["join"])
    finally:
        host.check_output(f"systemctl stop a-job; echo 2.5.2 > {MODULE}/version")
    assert run.returncode != 0
    assert "a job may use it: not changed" in run.printed
