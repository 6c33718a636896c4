"""What containers of jobs get from their node, by enroot's mounts, list of libraries and our hook.

The hook runs as enroot runs it: with the files that enroot names, without enroot itself.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[2] / "roles/enroot_pyxis/files/hooks.d/90-gcluster.sh"


class Container:
    """A container that is about to start."""

    def __init__(self, folder: Path) -> None:
        """Start with an empty image on a node without settings."""
        self.etc, self.image = folder / "etc", folder / "image"
        self.mounts, self.environment = folder / "fstab", folder / "environment"
        for path in (self.etc / "gcluster/job-environment.d", self.etc / "slurm", self.image):
            path.mkdir(parents=True)
        self.mounts.touch()
        self.environment.write_text("PATH=/usr/bin\n")

    def start(self, job: str = "7") -> tuple[list[str], dict[str, str]]:
        """Run the hook; return what is mounted, and the container's variables."""
        given = {
            "PATH": "/usr/bin:/bin",
            "ENROOT_ROOTFS": str(self.image),
            "ENROOT_MOUNTS": str(self.mounts),
            "ENROOT_ENVIRON": str(self.environment),
            "GCLUSTER_ETC": str(self.etc),
            "SLURM_JOB_ID": job,
        }
        done = subprocess.run(
            ["bash", HOOK], env=given, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        lines = self.environment.read_text().splitlines()
        mounted = [line.split()[0] for line in self.mounts.read_text().splitlines()]
        return mounted, dict(line.split("=", 1) for line in lines)


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def libraries(container: Container, tmp_path: Path) -> Path:
    """Give the node a folder of libraries that containers may have."""
    folder = tmp_path / "opt/amazon/ofi-nccl"
    (folder / "lib/x86_64-linux-gnu").mkdir(parents=True)
    (folder / "lib/x86_64-linux-gnu/libnccl-net.so").touch()
    (container.etc / "gcluster/container-libraries").write_text(f"# ours\n{folder}\n")
    return folder


def test_a_node_without_settings_changes_nothing(container: Container) -> None:
    assert container.start() == ([], {"PATH": "/usr/bin"})


def test_an_image_without_the_fabrics_libraries_gets_the_nodes(
    container: Container, tmp_path: Path
) -> None:
    folder = libraries(container, tmp_path)
    container.environment.write_text("LD_LIBRARY_PATH=/image/lib\n")
    mounted, variables = container.start()
    assert mounted == [str(folder)]
    assert variables["LD_LIBRARY_PATH"] == f"{folder}/lib/x86_64-linux-gnu:/image/lib"


def test_an_image_that_has_them_keeps_its_own(container: Container, tmp_path: Path) -> None:
    folder = libraries(container, tmp_path)
    inside = Path(f"{container.image}{folder}")
    inside.mkdir(parents=True)
    (inside / "lib").touch()
    assert container.start() == ([], {"PATH": "/usr/bin"})


def test_what_goes_before_a_setting_goes_before_the_images_and_else_is_left_to_the_job(
    container: Container,
) -> None:
    settings = container.etc / "gcluster/job-environment.d/nccl"
    settings.write_text("# ours\nNCCL_NET=gIB\nLD_LIBRARY_PATH+=/usr/local/gib/lib64\n")
    assert "LD_LIBRARY_PATH" not in container.start()[1]
    container.environment.write_text("LD_LIBRARY_PATH=/image/lib\n")
    for _ in range(2):
        found = container.start()[1]
    assert found == {"LD_LIBRARY_PATH": "/usr/local/gib/lib64:/image/lib"}


def test_the_jobs_folder_on_the_nodes_disks_is_in_its_container_and_no_other(
    container: Container, tmp_path: Path
) -> None:
    (container.etc / "slurm/job-scratch.conf").write_text(f"# ours\n{tmp_path}\n")
    folder = tmp_path / "gcluster-jobs/7"
    folder.mkdir(parents=True)
    assert container.start("8")[0] == []
    assert container.start("7")[0] == [str(folder)]
