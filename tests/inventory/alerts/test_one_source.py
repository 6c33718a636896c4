"""Role alertmanager and the chart have the same routes, receivers, grouping and messages."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.inventory.kubernetes_objects.compiled import facts_of

from gcluster.inventory.alerts import alertmanager_config, inhibitions
from gcluster.inventory.compile.kubernetes_objects.monitoring.stack import stack_values
from gcluster.lifecycle.secrets.certificates import certificate_of, new_authority
from gcluster.schemas.load import load_text
from gcluster.schemas.spec.cluster import Alerts

from .written import SPEC, configuration, everyone, secret

HALL = "{provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.22.0.0/16}}"
HEAD = "role: controller, hosts: [{name: head, address: 10.22.0.1}]"
MOUNTED = "/etc/alertmanager/secrets/gcluster-monitoring"
"""Where the operator mounts the chart's Secret."""


def test_the_role_writes_what_the_chart_s_alertmanager_is_given_with_secrets_in_their_place(
    tmp_path: Path,
) -> None:
    """Routes, receivers, grouping and messages; what explains what is the scheduler's own."""
    secrets = {"mail": "one", "webhook": "https://of/pager", "slack": "https://of/chat"}
    written = yaml.safe_load(configuration(tmp_path, everyone(), **secrets))
    text = SPEC.replace("slurm", "kubernetes, cni: cilium").replace("{provider: local}", HALL)
    text = text.replace("count: 2", "hosts: [{name: gpu1, address: 10.22.0.2}]")
    text = text.replace("sim.h100x8", "hgx-h100-8").replace("role: controller", HEAD)
    spec = load_text(
        f"{text}monitoring: {json.dumps({'prometheus': True, 'alerts': everyone()})}\n"
    )
    assert spec.spec is not None, spec.diagnostics
    made = stack_values(facts_of(spec.spec))["alertmanager"]["config"]
    keys = {"mail": "auth_password", "webhook": "url", "slack": "api_url"}
    for receiver in made["receivers"][1:]:
        key = keys[receiver["name"]]
        for one in next(value for value in receiver.values() if isinstance(value, list)):
            assert Path(one.pop(f"{key}_file")).name == receiver["name"]
            one[key] = secrets[receiver["name"]]
            if "tls_config" in one:
                assert one["tls_config"] == {"ca_file": f"{MOUNTED}/mail-ca.pem"}
                one |= {"hello": "head", "tls_config": {"ca_file": f"{tmp_path}/mail-ca.pem"}}

    assert (made.pop("inhibit_rules"), written.pop("inhibit_rules")) == (
        inhibitions("kubernetes"),
        inhibitions("slurm"),
    )
    assert written == made


@pytest.mark.monitoring
def test_amtool_takes_what_the_chart_s_alertmanager_is_given(tmp_path: Path) -> None:
    alerts = msgspec.convert(everyone(), Alerts)
    for name, value in (("mail", "x"), ("webhook", "https://of/w"), ("slack", "https://of/s")):
        secret(tmp_path, name, value)
    (tmp_path / "mail-ca.pem").write_bytes(certificate_of(new_authority("mail")))
    config = alertmanager_config(alerts, str(tmp_path), "campus")
    [hook] = [one["webhook_configs"][0] for one in config["receivers"] if "webhook_configs" in one]
    hook["url"] = Path(hook.pop("url_file")).read_text()  # Debian 12's (0.25) knows no url_file
    written = tmp_path / "alertmanager.yml"
    written.write_text(yaml.safe_dump(config))
    amtool = shutil.which("amtool")
    assert amtool is not None, "make test-alerts brings amtool"

    done = subprocess.run(
        [amtool, "check-config", str(written)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
