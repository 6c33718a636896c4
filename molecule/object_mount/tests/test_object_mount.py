"""Tools at one version, buckets mounted by systemd under a bounded cache, and no key anywhere."""

from __future__ import annotations

from conftest import Play
from testinfra.host import Host

PROGRAM_MODE, CACHE_MODE = 0o755, 0o700
TARBALL = "/var/cache/mountpoint-s3-1.24.0.tar.gz"


def test_the_tools_have_their_versions_and_stay(host: Host) -> None:
    assert host.package("gcsfuse").version == "3.11.2"
    assert "gcsfuse" in host.check_output("apt-mark showhold").split()
    assert host.file("/opt/gcluster/mountpoint-s3-1.24.0/bin/mount-s3").mode == PROGRAM_MODE


def test_each_bucket_is_mounted_as_wanted(host: Host) -> None:
    assert "ro" in host.mount_point("/data").options
    assert "rw" in host.mount_point("/runs").options
    for unit in ("object-data", "object-runs"):
        assert host.service(unit).is_enabled


def test_caches_are_bounded_and_private(host: Host) -> None:
    units = host.check_output("cat /etc/systemd/system/object-*.service")
    assert "--max-cache-size 1024" in units
    assert "--file-cache-max-size-mb 512" in units
    assert host.file("/var/cache/gcluster-object/data").mode == CACHE_MODE


def test_jobs_wait_for_the_mounts(host: Host) -> None:
    assert "slurmd.service" in host.check_output("systemctl show --property Before object-data")


def test_a_tarball_that_is_another_one_is_not_taken(host: Host, converge: Play) -> None:
    host.check_output(f"rm {TARBALL}")
    run = converge(phases=["install"], checksum=f"sha256:{'0' * 64}")
    assert run.returncode != 0
    assert "checksum" in run.stdout
    assert not host.file(TARBALL).exists
    assert converge(phases=["install"]).returncode == 0


def test_a_tarball_without_a_trusted_key_or_checksum_is_refused(converge: Play) -> None:
    run = converge(phases=["install"], checksum="")
    assert run.returncode != 0
    assert "no checksum is known for http" in run.stdout
    assert "software.sources.mountpoint-s3.checksums" in run.stdout


def test_a_bucket_that_the_node_may_not_read_is_reported_and_mounted_later(
    host: Host, converge: Play
) -> None:
    host.check_output("touch /srv/no-access; systemctl stop object-runs")
    run = converge(phases=["join"])
    answer = converge(phases=["verify"])
    host.check_output("rm /srv/no-access; systemctl stop object-runs")
    assert run.returncode != 0
    assert answer.returncode != 0
    assert "403 Forbidden" in answer.stdout
    assert converge(phases=["join", "verify"]).returncode == 0


def test_a_mount_that_changed_is_mounted_again(host: Host, converge: Play) -> None:
    before = host.check_output("systemctl show --property InvocationID object-runs")
    assert converge(cache=1024).returncode == 0
    assert host.check_output("systemctl show --property InvocationID object-runs") != before
    assert converge().returncode == 0


def test_jobs_may_write_where_nodes_may(host: Host) -> None:
    units = {
        name: host.check_output(f"grep ^ExecStart= /etc/systemd/system/object-{name}.service")
        for name in ("data", "runs")
    }
    assert "--dir-mode=0777 --file-mode=0666" in units["runs"]
    assert "-mode" not in units["data"]
