"""What a local node has of a machine of Google's: guest agent and metadata service, as doubles.

Nodes have cloud-init and no agent of Google's. So the metadata of a machine becomes user data that
does what the agent does of it: the login user of `ssh-keys`, and the start-up script at each start.
The metadata service is a small server inside the node under the real name. It takes guest
attributes only, and the double of Google reads them out of a folder.
"""

from __future__ import annotations

import json

ATTRIBUTES = "/run/guest-attributes"
_SERVICE = f'''\
#!/usr/bin/python3
"""A double of Google's metadata service: it takes guest attributes."""
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

PREFIX = "/computeMetadata/v1/instance/guest-attributes/"


class Handler(BaseHTTPRequestHandler):
    def do_PUT(self):
        right = self.headers.get("Metadata-Flavor") == "Google" and self.path.startswith(PREFIX)
        if right:
            file = Path("{ATTRIBUTES}") / self.path.removeprefix(PREFIX)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200 if right else 403)
        self.end_headers()


HTTPServer(("127.0.0.1", 80), Handler).serve_forever()
'''
_CURL = '''\
#!/usr/bin/python3
"""A stand-in for curl, which Google's images have and this node lacks: PUT of what comes in."""
import sys
import urllib.request

words = sys.argv[1:]
headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")
asked = urllib.request.Request(words[-1], sys.stdin.buffer.read(), headers, method="PUT")
urllib.request.urlopen(asked, timeout=10).read()
'''
_UNITS = {
    "metadata-double": "Type=simple\nExecStart=/usr/local/sbin/metadata-double",
    "google-startup-scripts": "Type=oneshot\nExecStart=/usr/local/sbin/startup-script",
}
_UNIT = (
    "[Unit]\nAfter=metadata-double.service\n[Service]\n{}\n[Install]\nWantedBy=multi-user.target\n"
)


def user_data(metadata: dict[str, str]) -> str:
    """Return the user data of a node for the metadata of a machine."""
    user, _, key = metadata["ssh-keys"].partition(":")
    files = {
        "/usr/local/sbin/metadata-double": _SERVICE,
        "/usr/local/sbin/startup-script": metadata["startup-script"],
        "/usr/local/bin/curl": _CURL,
    }
    units = {f"/etc/systemd/system/{n}.service": _UNIT.format(t) for n, t in _UNITS.items()}
    written = [
        *({"path": p, "content": text, "permissions": "0755"} for p, text in files.items()),
        *({"path": p, "content": text, "permissions": "0644"} for p, text in units.items()),
    ]
    config = {
        "users": [
            {
                "name": user, "shell": "/bin/bash", "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "lock_passwd": True, "ssh_authorized_keys": [key],
            }
        ],
        "write_files": written,
        "runcmd": [
            "echo 127.0.0.1 metadata.google.internal >> /etc/hosts",
            "systemctl daemon-reload",
            "systemctl enable --now metadata-double.service",
            "sleep 1",
            "systemctl enable --now google-startup-scripts.service",
        ],
    }  # fmt: skip
    return "#cloud-config\n" + json.dumps(config)
