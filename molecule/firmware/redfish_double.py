"""A BMC that isn't there: answers the recorded Redfish resources, and plays updates as tasks.

usage: redfish_double.py RECORDING PORT CERTIFICATE KEY [STATE]

STATE is a JSON file, read at each request, that changes what happens: "power" (On, Off), "task"
(Completed, Exception, staged), "service" (false: the update service is off), "elsewhere" (an
inventory that leads to another host). User root, password of the file's key "password".
"""

import base64
import json
import re
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

INVENTORY = "/redfish/v1/UpdateService/FirmwareInventory"
USER, PASSWORD = "root", "only-for-the-double"


class Bmc(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if not self._known():
            return
        state, resources = self._state(), self.server.resources
        if self.path.startswith("/redfish/v1/TaskService/Tasks/"):
            self._task(state)
            return
        found = resources.get(self.path)
        if found is None:
            self._reply(404, {"error": {"message": "no such resource"}})
            return
        found = dict(found)
        if self.path == "/redfish/v1/UpdateService" and state.get("service") is False:
            found["ServiceEnabled"] = False
        if self.path == INVENTORY and state.get("elsewhere"):
            found["Members"] = [{"@odata.id": "https://192.0.2.66/redfish/v1/stolen"}]
        if "PowerState" in found:
            found["PowerState"] = state.get("power", "On")
        self._reply(200, found)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._known():
            return
        if self.path.endswith("update-multipart"):
            parameters = re.search(rb"\r\n\r\n(\{.*?\})\r\n--", body, re.DOTALL)[1]
            target = json.loads(parameters)["Targets"][0]
            version = re.search(rb"version=(\S+)", body.split(b"UpdateFile", 1)[1])[1].decode()
        else:
            said = json.loads(body)
            target, version = said["Targets"][0], said["ImageURI"].rsplit("-", 1)[1][:-4]
        self.server.tasks.append({"target": target, "version": version, "looks": 0})
        number = len(self.server.tasks)
        place = f"/redfish/v1/TaskService/Tasks/{number}"
        self._reply(202, {"@odata.id": place, "TaskState": "New"}, {"Location": place})

    def _task(self, state):
        task = self.server.tasks[int(self.path.rsplit("/", 1)[1]) - 1]
        task["looks"] += 1
        if task["looks"] < 3:
            self._reply(200, {"TaskState": "Running", "PercentComplete": 40 * task["looks"]})
        elif state.get("task") == "Exception":
            why = {
                "MessageId": "Update.1.0.VerificationFailed",
                "Message": "The image's signature is not ours.",
            }
            self._reply(
                200, {"TaskState": "Exception", "TaskStatus": "Critical", "Messages": [why]}
            )
        elif state.get("task") == "staged":
            why = {"MessageId": "Base.1.13.ResetRequired", "Message": "Reset to activate."}
            self._reply(200, {"TaskState": "Completed", "TaskStatus": "OK", "Messages": [why]})
        else:
            self.server.resources[task["target"]]["Version"] = task["version"]
            self._reply(200, {"TaskState": "Completed", "TaskStatus": "OK", "Messages": []})

    def _state(self):
        path = self.server.state
        return json.loads(path.read_text()) if path and path.exists() else {}

    def _known(self):
        token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") == f"Basic {token}":
            return True
        self._reply(401, {"error": {"@Message.ExtendedInfo": [{"Message": "Who are you?"}]}})
        return False

    def _reply(self, status, body, headers=None):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Log nothing."""


def serve(recording, port, certificate, key, state=None):
    """Return the server, which listens."""
    server = ThreadingHTTPServer(("0.0.0.0", port), Bmc)
    lines = Path(recording).read_text().splitlines()
    text = "".join(line for line in lines if not line.startswith("# "))
    server.resources = json.loads(text)["resources"]
    server.tasks, server.state = [], Path(state) if state else None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    return server


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]).serve_forever()
