"""What AMD's exporter says of GPUs, as figures for node exporter.

The lines have the labels of real ones of an MI300X, whole and in partitions (silogen/kaiwo, a
comment of its metrics' monitor; ROCm/device-metrics-exporter, pull request 536).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from gcluster.inventory.alerts import exported_metrics
from gcluster.inventory.compile.kubernetes_objects.monitoring.objects import AMD_METRICS

from .programs import load_program

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "roles/amd_exporter"
LABELS = (
    'card_model="102-G30211-0C",card_series="AMD Instinct MI300X OAM",card_vendor="AMD",'
    'cluster_name="",container="",driver_version="6.12.12",gpu_compute_partition_type="{mode}",'
    'gpu_id="{gpu}",gpu_memory_partition_type="nps1",gpu_partition_id="{part}",'
    'gpu_uuid="ccff74a1-0000-1000-80e0-c6d49f5b0d86",hostname="tw038",namespace="",pod="",'
    'serial_number="692409005408",vbios_version="022.040.003.043.000001"'
)


def line(name: str, gpu: int, value: float, mode: str = "spx", part: int = 0) -> str:
    return f"{name}{{{LABELS.format(gpu=gpu, mode=mode, part=part)}}} {value}\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    loaded = load_program(ROLE / "files/libexec/amd-metrics.py", "amd_metrics")
    monkeypatch.setattr(loaded, "FOLDER", tmp_path)
    monkeypatch.setattr(loaded, "JOBS", tmp_path / "jobs")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/2").write_text("7\n8\n")
    return loaded


@pytest.fixture
def exporter(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Serve the last of a list of pages as AMD's exporter would."""
    pages: list[bytes] = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(pages[-1])

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        monkeypatch.setattr(program, "PORT", server.server_port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield pages
        server.shutdown()


def test_activity_has_the_jobs_of_a_gpu_and_other_figures_have_none(
    program: ModuleType, exporter: list[bytes], tmp_path: Path
) -> None:
    text = "# HELP gpu_gfx_activity Graphics engine usage in Percentage (0-100)\n"
    text += "# TYPE gpu_gfx_activity gauge\n" + line("gpu_gfx_activity", 2, 97)
    text += line("gpu_gfx_activity", 3, 0) + line("gpu_package_power", 2, 541)
    text += line("gpu_ecc_uncorrect_total", 2, 1.2e1) + line("gpu_clock", 2, 132)
    exporter.append(text.encode())

    assert program.main() == 0
    assert (tmp_path / "gcluster-amd.prom").read_text() == (
        "gcluster_amd_exporter_up 1\n"
        'gpu_ecc_uncorrect_total{gpu="2"} 12.0\n'
        'gpu_gfx_activity{gpu="2",hpc_job="7"} 97\n'
        'gpu_gfx_activity{gpu="2",hpc_job="8"} 97\n'
        'gpu_gfx_activity{gpu="3"} 0\n'
        'gpu_package_power{gpu="2"} 541\n'
    )


def test_partitions_have_no_job(program: ModuleType) -> None:
    text = line("gpu_gfx_activity", 2, 5, "cpx", 0) + line("gpu_gfx_activity", 47, 9, "cpx", 7)

    assert "hpc_job" not in program.page(text)
    assert 'gpu_gfx_activity{gpu="47"} 9\n' in program.page(text)


def test_an_exporter_that_does_not_answer_is_a_figure_too(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "PORT", 1)

    assert program.main() == 1
    assert (tmp_path / "gcluster-amd.prom").read_text() == "gcluster_amd_exporter_up 0\n"


def test_the_exporter_is_to_export_what_is_handed_on_and_alerts_use_nothing_else(
    program: ModuleType,
) -> None:
    fields = json.loads((ROLE / "files/fields.json").read_text(encoding="utf-8"))

    assert {name.lower() for name in fields} == program.KEPT
    assert set(AMD_METRICS) == program.KEPT, "under Kubernetes Prometheus keeps the same"
    assert set(exported_metrics()["amd"]) <= program.KEPT | {"gcluster_amd_exporter_up"}
