"""Scripts of other tools become hooks of the pools that ran them, or are listed with the reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from gcluster.schemas.adopt.aws.parallelcluster import adopt_parallelcluster
from gcluster.schemas.adopt.aws.place import AwsPlace
from gcluster.schemas.adopt.draft import Adopted, Draft, spec_text
from gcluster.schemas.adopt.gcp.toolkit import adopt_toolkit
from gcluster.schemas.adopt.scripts import Scripts
from gcluster.schemas.load import load_text

ABOUT = {"origin": "a test", "date": "2026-11-28"}
PLAYBOOK = """
- name: Have a notice
  hosts: all
  become: true
  gather_facts: false
  vars: {notice_text: reserved for the \\$(team)}
  tasks:
    - name: Write it
      ansible.builtin.copy:
        {dest: "{{ notice_path }}", content: "{{ notice_text }}\\n", mode: "0644"}
      notify: Say so
  handlers:
    - name: Say so
      ansible.builtin.copy: {dest: "{{ notice_path }}.said", content: said, mode: "0644"}
"""


def blueprint(runners: list[Any], **controller: Any) -> Adopted:
    modules = [
        {"id": "start", "source": "modules/scripts/startup-script",
         "settings": {"runners": runners}},
        {"id": "gpu", "source": "community/modules/compute/schedmd-slurm-gcp-v6-nodeset",
         "use": ["start"],
         "settings": {"machine_type": "a3-megagpu-8g", "node_count_static": 2}},
        {"id": "main", "source": "community/modules/compute/schedmd-slurm-gcp-v6-partition",
         "use": ["gpu"], "settings": {"partition_name": "main"}},
        {"id": "login", "source": "community/modules/scheduler/schedmd-slurm-gcp-v6-login",
         "settings": {}},
        {"id": "head", "source": "community/modules/scheduler/schedmd-slurm-gcp-v6-controller",
         "use": ["main"], "settings": controller},
    ]  # fmt: skip
    data = {
        "blueprint_name": "lab",
        "vars": {
            "project_id": "acme",
            "region": "us-central1",
            "zone": "us-central1-c",
            "who": "ada",
        },
        "deployment_groups": [{"group": "one", "modules": modules}],
    }
    return adopt_toolkit(data, given={}, name="", **ABOUT)


def pcluster(actions: dict[str, Any]) -> Adopted:
    data = {
        "Region": "us-east-1",
        "Image": {"Os": "ubuntu2204"},
        "HeadNode": {"InstanceType": "m5.8xlarge", "Networking": {"SubnetId": "subnet-0aaa1111"}},
        "Scheduling": {
            "Scheduler": "slurm",
            "SlurmQueues": [
                {
                    "Name": "gpu",
                    "ComputeResources": [{"Name": "p5", "InstanceType": "p5.48xlarge"}],
                    "Networking": {"SubnetIds": ["subnet-0aaa1111"]},
                    "CustomActions": actions,
                }
            ],
        },
    }
    return adopt_parallelcluster(
        data, name="lab", place=AwsPlace(zone_id="use1-az4", vpc="vpc-0aaa1111"), **ABOUT
    )


def listed(adopted: Adopted, word: str) -> list[tuple[str, str]]:
    return [(each.kind, each.why) for each in adopted.not_carried if word in each.where]


def refused(adopted: Adopted) -> list[str]:
    """Return the errors that hooks of the spec have."""
    text = spec_text(adopted, "a test")
    found = load_text(text, file="cluster.yaml").diagnostics
    return [each.summary for each in found if each.is_error and each.path[:1] == ("hooks",)]


def test_programs_run_on_the_pools_of_the_modules_that_use_them() -> None:
    adopted = blueprint(
        [{"type": "shell", "destination": "hold.sh", "args": "--who 'ada b'",
          "content": "#!/bin/bash\napt-mark hold $(vars.who) \\$(uname -r)\n"}],
        login_startup_script="echo login",
        controller_startup_script="$(start.startup_script)",
    )  # fmt: skip
    assert adopted.spec["hooks"] == {
        "hold": {
            "type": "script",
            "text": "#!/bin/bash\napt-mark hold ada $(uname -r)\n",
            "arguments": ["--who", "ada b"],
            "pools": ["gpu", "head"],
        },
        "login-startup": {"type": "script", "text": "#!/bin/sh\necho login", "pools": ["login"]},
    }
    assert refused(adopted) == []
    assert [kind for kind, _ in listed(adopted, "hook hold")] == ["guess"]


def test_a_file_is_written_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "limits d" / "99.conf"
    text = "* - memlock unlimited\nEND_OF_FILE\n$HOME `id`"
    adopted = blueprint([{"type": "data", "destination": str(path), "content": text}])
    (hook,) = adopted.spec["hooks"].values()
    subprocess.run(["sh", "-c", hook["text"]], check=True)
    assert path.read_text() == f"{text}\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert refused(adopted) == []


def test_a_playbook_becomes_a_role_that_does_the_same(tmp_path: Path) -> None:
    adopted = blueprint(
        [{"type": "ansible-local", "destination": "notice.yml", "content": PLAYBOOK}]
    )
    hook = adopted.spec["hooks"]["notice"]
    assert (hook["type"], hook["pools"]) == ("role", ["gpu"])
    assert hook["variables"] == {"notice_text": "reserved for the $(team)"}
    assert refused(adopted) == []
    for name, text in hook["files"].items():
        file = tmp_path / "roles" / "notice" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    given = {
        **hook["variables"],
        "notice_path": str(tmp_path / "notice"),
        "ansible_python_interpreter": sys.executable,
    }
    play = [{"hosts": "localhost", "gather_facts": False, "roles": ["notice"], "vars": given}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play))
    ansible = Path(sys.executable).with_name("ansible-playbook")
    done = subprocess.run(
        [ansible, "-c", "local", "-i", "localhost,", "play.yml"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "notice").read_text() == "reserved for the $(team)\n"
    assert (tmp_path / "notice.said").read_text() == "said"


def test_what_cannot_become_a_hook_is_listed_with_the_reason() -> None:
    several = "- {hosts: all, tasks: []}\n- {hosts: all, tasks: []}\n"
    other = "- {hosts: all, tasks: [{block: [{community.general.ufw: {state: enabled}}]}]}\n"
    adopted = blueprint(
        [
            {"type": "ansible-local", "destination": "a.yml", "content": several},
            {"type": "ansible-local", "destination": "b.yml", "content": other},
            {"type": "ansible-local", "destination": "c.yml", "content": "no: playbook"},
            {
                "type": "ansible-local",
                "destination": "d.yml",
                "content": "- {hosts: x, roles: [r]}",
            },
            {"type": "shell", "destination": "e.sh", "source": "gs://acme/e.sh"},
            {"type": "shell", "destination": "f.sh", "content": "echo $(vars.unknown)"},
            {"type": "shell", "destination": "install_slurm.sh", "content": "make install"},
            "$(data.mount_runner)",
            "$(data.other_runner)",
        ]
    )
    assert "hooks" not in adopted.spec
    found = [listed(adopted, f"runners[{number}]")[0] for number in range(9)]
    assert [kind for kind, _ in found] == [
        "lost", "lost", "lost", "lost", "lost", "unfinished", "replaced", "replaced", "lost",
    ]  # fmt: skip
    assert "several plays" in found[0][1]
    assert "community.general.ufw" in found[1][1]
    assert "no playbook" in found[2][1]
    assert "roles" in found[3][1]


def test_prologs_and_epilogs_are_hooks_around_jobs() -> None:
    adopted = blueprint(
        [],
        prolog_scripts=[{"filename": "look.sh", "content": "#!/bin/bash\ntrue\n"}],
        epilog_scripts=[{"filename": "gone.sh", "source": "scripts/gone.sh"}],
        enable_external_prolog_epilog=True,
    )
    assert adopted.spec["hooks"] == {"look": {"type": "prolog", "text": "#!/bin/bash\ntrue\n"}}
    assert listed(adopted, "enable_external_prolog_epilog")[0][0] == "replaced"
    assert listed(adopted, "epilog_scripts[0]")[0][0] == "lost"
    assert refused(adopted) == []


def test_custom_actions_fetch_their_script_as_parallelcluster_does() -> None:
    adopted = pcluster(
        {
            "OnNodeStart": {"Script": "https://example.edu/start.sh?raw=1"},
            "OnNodeConfigured": {
                "Sequence": [
                    {"Script": "https://example.edu/end.sh", "Args": ["a b", 3]},
                    {"Script": "s3://acme/more.sh"},
                    {"Script": "https://example.edu/${WHAT}.sh"},
                ]
            },
            "OnNodeUpdated": {"Script": "https://example.edu/updated.sh"},
        }
    )
    hooks = adopted.spec["hooks"]
    assert {name: hook["pools"] for name, hook in hooks.items()} == {
        "start": ["gpu"],
        "end": ["gpu"],
    }
    assert (hooks["start"]["before"], hooks["end"]["after"]) == ("base", "scheduler")
    assert hooks["end"]["arguments"] == ["a b", "3"]
    assert "'https://example.edu/start.sh?raw=1'" in hooks["start"]["text"]
    assert refused(adopted) == []
    kinds = {each.where: each.kind for each in adopted.not_carried if "CustomActions" in each.where}
    assert sorted(kinds.values()) == ["lost", "lost", "unfinished"]


def test_a_published_script_is_known_by_its_whole_name() -> None:
    scripts = Scripts(Draft("lab", **ABOUT), "parallelcluster")
    own = "https://raw.githubusercontent.com/aws-samples/aws-parallelcluster-post-install-scripts/main"
    assert "pyxis" in scripts.own_way(f"{own}/pyxis/postinstall.sh")
    assert scripts.own_way("https://example.edu/pyxis/postinstall.sh") == ""
    toolkit = Scripts(Draft("lab", **ABOUT), "cluster-toolkit")
    assert "Slurm" in toolkit.own_way("install_slurm.sh")
    assert toolkit.own_way("re_install_slurm.sh") == toolkit.own_way("install_slurm.sh.old") == ""
