"""Queries the Prometheus of the host that it runs on: run there as root, by `prometheus.py`.

Arguments: the folder with its CA certificate and password, and its port. Standard input: a JSON
list of [path below /api/v1, parameters]; standard output: a JSON list of Prometheus' own answers.
Exit status 3: it doesn't answer; standard error says why in one line.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import sys
import urllib.parse
from pathlib import Path
from typing import Any

LIMIT_S = 120
NO_ANSWER = 3


def main() -> int:
    """Query all, one after the other."""
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    try:
        context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        login = f"gcluster:{(folder / 'password').read_text().strip()}"
        connection = http.client.HTTPSConnection(
            "localhost", port, timeout=LIMIT_S, context=context
        )
        answers = [query(connection, login, *each) for each in json.load(sys.stdin)]
    except (OSError, http.client.HTTPException, ValueError) as error:
        sys.stderr.write(f"{' '.join(str(error).split()) or type(error).__name__}\n")
        return NO_ANSWER
    json.dump(answers, sys.stdout)
    return 0


def query(
    connection: http.client.HTTPSConnection, login: str, path: str, parameters: dict[str, str]
) -> Any:
    """Return one answer, an error of Prometheus' among them.

    Raises:
        ValueError: it is no JSON, e.g. where the login is refused.
    """
    headers = {
        "Authorization": f"Basic {base64.b64encode(login.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    body = urllib.parse.urlencode(parameters)
    connection.request("POST", f"/api/v1/{path}", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if not text.startswith(b"{"):
        raise ValueError(f"Prometheus answers with status {answer.status}")
    return json.loads(text)


if __name__ == "__main__":
    sys.exit(main())
