"""One held version, an up-to-date list of devices, and a verify that checks each GPU."""

from __future__ import annotations

import json

import pytest
from conftest import Play, Recorded, Verified
from testinfra.host import Host


def versions(host: Host) -> set[str]:
    shown = host.check_output(
        "dpkg-query --show --showformat '${Version}\\n' '*nvidia-container*' | grep ."
    )
    return set(shown.split())


def test_all_of_the_toolkit_has_one_held_version_though_a_newer_one_is_there(host: Host) -> None:
    assert versions(host) == {"1.19.1-1"}
    assert "libnvidia-container1" in host.check_output("apt-mark showhold").split()
    moved = host.check_output("apt-get --simulate dist-upgrade | grep -c nvidia || true")
    assert moved == "0"


def test_the_list_of_devices_is_kept_up(host: Host) -> None:
    assert host.service("nvidia-cdi-refresh.path").is_running
    assert host.service("nvidia-cdi-refresh.service").is_enabled


def test_docker_runs_with_the_runtime_and_keeps_containers_over_a_restart(host: Host) -> None:
    settings = json.loads(host.file("/etc/docker/daemon.json").content_string)
    assert host.service("docker").is_running
    assert settings["runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"
    assert settings["features"]["cdi"] is True
    assert settings["live-restore"] is True


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("gpu-missing", "containers can get 7 GPUs, not 8"),
        ("no-runtime", "Docker runs without the runtime nvidia"),
        ("old-toolkit", "the toolkit is 1.18.1, not 1.19.1"),
        ("no-library", "enroot's hook calls, doesn't answer"),
    ],
)
def test_verify_fails_where_containers_would_miss_gpus(
    verified: Verified, case: str, answer: str
) -> None:
    run = verified(case)
    assert run.returncode != 0
    assert answer in run.stdout


def test_settings_of_docker_that_are_no_json_are_reported_and_others_are_kept(
    host: Host, converge: Play
) -> None:
    host.check_output("echo '{' > /etc/docker/daemon.json")
    run = converge(phases=["configure"])
    assert run.returncode != 0
    assert "daemon.json is no JSON" in run.stdout

    host.check_output("""echo '{"debug": true}' > /etc/docker/daemon.json""")
    assert converge(phases=["configure", "verify"]).returncode == 0
    settings = json.loads(host.file("/etc/docker/daemon.json").content_string)
    assert settings["debug"] is True
    assert "nvidia" in settings["runtimes"]


def test_a_version_that_is_unknown_is_reported_with_those_that_are(
    host: Host, converge: Play
) -> None:
    run = converge(toolkit="1.99.0", phases=["install"])
    assert run.returncode != 0
    assert "no nvidia-container-toolkit 1.99.0-*" in run.stdout
    assert "1.20.0-1" in run.stdout
    assert versions(host) == {"1.19.1-1"}


def test_amds_toolkit_lists_its_gpus_at_each_boot(
    host: Host, converge: Play, recorded: Recorded
) -> None:
    with recorded("amd"):
        run = converge(vendor="amd", toolkit="1.2.0")
    assert run.returncode == 0, run.stdout + run.stderr
    assert host.service("gcluster-amd-cdi").is_enabled
    assert host.service("gcluster-amd-cdi").is_running  # the recording answers just this call
