"""enroot by checksum, pyxis built for the installed Slurm, and a verify through srun."""

from __future__ import annotations

from conftest import Play
from testinfra.host import Host

BUILT = "/usr/local/share/pyxis/gcluster-built"
"""Records which pyxis was built, and for which Slurm."""
PLUGIN = "/usr/local/lib/slurm/spank_pyxis.so"
EXECUTABLE, SHARED = 0o755, 0o1777


def test_srun_has_the_option_of_the_plugin_that_was_built_here(host: Host) -> None:
    assert "--container-image=IMAGE" in host.check_output("srun --help")
    headers = host.package("libslurm-dev").version
    assert host.file(BUILT).contains(f"^0.20.0 {headers} ")


def test_enroot_is_held_and_its_hooks_for_slurm_are_on(host: Host) -> None:
    held = set(host.check_output("apt-mark showhold").split())
    assert {"enroot", "enroot+caps"} <= held
    assert host.file("/etc/enroot/hooks.d/50-slurm-pmi.sh").mode == EXECUTABLE


def test_containers_get_devices_by_mounts_and_the_rest_by_a_hook(host: Host) -> None:
    mounts = host.file("/etc/enroot/mounts.d/90-gcluster.fstab")
    assert mounts.contains("^/dev/null /dev/null none x-create=auto,rbind,rw,nosuid,noexec")
    assert host.file("/etc/enroot/hooks.d/90-gcluster.sh").mode == EXECUTABLE


def test_every_user_may_keep_containers_and_none_may_remove_anothers(host: Host) -> None:
    for folder in ("/run/enroot", "/var/lib/enroot/cache", "/var/lib/enroot/data"):
        assert host.file(folder).mode == SHARED


def test_a_file_with_another_checksum_is_not_installed(host: Host, converge: Play) -> None:
    wrong = "sha256:" + "0" * 64
    host.check_output("apt-get remove --yes --allow-change-held-packages enroot+caps enroot")
    run = converge(phases=["install"], checksum=wrong)
    assert run.returncode != 0
    assert f"not {wrong}: it was not installed" in run.stdout
    assert not host.package("enroot").is_installed
    assert converge().returncode == 0


def test_files_without_a_trusted_key_or_checksum_are_refused_with_the_line_to_write(
    converge: Play,
) -> None:
    run = converge(phases=["preflight"], checksum="")
    assert run.returncode != 0
    assert "software.sources.enroot.checksums" in run.stdout


def test_another_slurm_has_the_plugin_built_again(host: Host, converge: Play) -> None:
    host.check_output(f"echo '0.20.0 23.11.4' > {BUILT}")
    before = host.file(PLUGIN).mtime
    run = converge(phases=["install"])
    assert run.returncode == 0, run.stdout
    assert host.file(BUILT).contains(f"^0.20.0 {host.package('libslurm-dev').version} ")
    assert host.file(PLUGIN).mtime > before


def test_a_submit_host_gets_the_plugin_and_no_enroot(converge: Play) -> None:
    run = converge("--check", enroot_pyxis_runs_containers=False)
    assert run.returncode == 0, run.stdout
