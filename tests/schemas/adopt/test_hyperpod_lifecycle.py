"""The folder of lifecycle scripts of a HyperPod cluster: what becomes of what is in it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from gcluster.cli.app import app
from gcluster.schemas.adopt.aws.hyperpod import adopt_hyperpod
from gcluster.schemas.adopt.aws.place import AwsPlace
from gcluster.schemas.adopt.draft import Adopted, spec_text

GROUPS = [
    {
        "InstanceGroupName": name,
        "InstanceType": machine,
        "InstanceCount": 1,
        "LifeCycleConfig": {"SourceS3Uri": "s3://acme/scripts", "OnCreate": "on_create.sh"},
    }
    for name, machine in (("head", "ml.m7i.xlarge"), ("gpu", "ml.p5.48xlarge"))
]
PARAMETERS = '{"workload_manager": "slurm", "controller_group": "head"}'
CONFIG = """
class Config:
    enable_docker_enroot_pyxis = False
    enable_observability = True
    enable_sssd = True
    enable_initsmhp = True
    enable_mount_s3 = True
    s3_bucket = "acme-data"
    if enable_mount_s3 and not s3_bucket:
        raise ValueError("no bucket")

class SssdConfig:
    ldap_uri = "ldaps://dir1.example.edu, ldaps://dir2.example.edu"
    ldap_search_base = "dc=example,dc=edu"
    ldap_default_bind_dn = "CN=reader,DC=example,DC=edu"
    ldap_default_authtok = "s3cret-of-the-directory"
"""


def adopted(lifecycle: dict[str, str] | None, parameters: object = None) -> Adopted:
    """Adopt the groups with a folder."""
    place = AwsPlace(region="us-east-1", zone_id="use1-az4")
    return adopt_hyperpod(
        GROUPS,
        parameters,
        name="",
        origin="it",
        date="2026-11-28",
        place=place,
        lifecycle=lifecycle,
    )


def test_switches_of_the_base_configuration_are_carried_and_its_password_is_not_shown() -> None:
    found = adopted(
        {
            "on_create.sh": "#!/bin/bash\npython3 -u lifecycle_script.py",
            "lifecycle_script.py": "",
            "provisioning_parameters.json": PARAMETERS,
            "config.py": CONFIG,
            "shared_users.txt": "",
            "utils/our_tool.sh": "#!/bin/bash\n",
        }
    )
    assert found.spec["software"] == {"containers": "none"}
    assert found.spec["monitoring"] == {"prometheus": True}
    assert found.spec["users"] == {
        "source": "sssd",
        "ldap": "ldaps://dir1.example.edu",
        "base": "dc=example,dc=edu",
        "bind_dn": "CN=reader,DC=example,DC=edu",
    }
    assert found.spec["storage"]["data"] == {
        "type": "object",
        "bucket": "s3://acme-data",
        "mount": "/mnt/acme-data",
        "site": "aws",
    }
    lost = {each.where for each in found.not_carried if each.kind == "lost"}
    assert lost == {
        "/home",
        "Config.enable_initsmhp: True",
        "SssdConfig.ldap_default_authtok",
        "SssdConfig.ldap_uri: further servers",
        "lifecycle folder: utils/our_tool.sh",
    }
    assert "s3cret" not in spec_text(found, "it")


def test_people_of_shared_users_keep_their_ids() -> None:
    found = adopted(
        {
            "on_create.sh": "",
            "lifecycle_script.py": "",
            "provisioning_parameters.json": PARAMETERS,
            "shared_users.txt": "ada,2001,/fsx/ada\nbob,2002,/fsx/bob\n",
        }
    )
    assert found.spec["users"] == [{"name": "ada", "uid": 2001}, {"name": "bob", "uid": 2002}]


def test_a_program_of_ones_own_becomes_a_hook_of_each_group(tmp_path: Path) -> None:
    folder, output = tmp_path / "scripts", tmp_path / "cluster.yaml"
    folder.mkdir()
    (folder / "on_create.sh").write_text("#!/bin/bash\napt-get install -y htop\n")
    (folder / "provisioning_parameters.json").write_text(PARAMETERS)
    (folder / "logo.png").write_bytes(b"\x89PNG\xff")
    groups = tmp_path / "groups.json"
    groups.write_text(json.dumps(GROUPS))
    given = ["--lifecycle", str(folder), "--region", "us-east-1", "--zone-id", "use1-az4"]
    ran = CliRunner().invoke(app, ["adopt", "hyperpod", str(groups), *given, "-o", str(output)])
    text = output.read_text()
    assert text.count("apt-get install -y htop") == len(GROUPS), ran.output
    assert "hooks:" in text


def test_without_the_folder_the_scripts_are_listed_with_the_option_that_reads_them() -> None:
    found = adopted(None, {"controller_group": "head"})
    why = {each.why for each in found.not_carried if "LifeCycleConfig" in each.where}
    assert why == {"your scripts don't run: --lifecycle DIR reads the folder"}
