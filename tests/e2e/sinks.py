"""Programs of a host under test: sinks of mail and of a webhook, and a query of Prometheus."""

from __future__ import annotations

SINK = """
import socketserver
class Sink(socketserver.StreamRequestHandler):
    def handle(self):
        say = lambda text: self.wfile.write(text.encode() + b"\\r\\n")
        say("220 sink")
        in_mail = False
        for raw in self.rfile:
            line = raw.decode().rstrip()
            with open("/root/mails", "a") as file:
                print(line, file=file)
            if in_mail:
                in_mail = line != "."
                if not in_mail:
                    say("250 kept")
                continue
            in_mail = line == "DATA"
            say("354 go on" if in_mail else "250 sink")
            if line == "QUIT":
                return
socketserver.ThreadingTCPServer(("127.0.0.1", 2525), Sink).serve_forever()
"""
HOOK = """
import http.server, json, time
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        posted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open("/root/posts", "a") as file:
            print(json.dumps({"at": time.time(), **posted}), file=file)
        self.send_response(200)
        self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", 2526), Hook).serve_forever()
"""
ASK = """
import base64, json, ssl, sys, urllib.error, urllib.parse, urllib.request
folder = "/etc/gcluster/prometheus/"
password = sys.argv[2].encode() if sys.argv[2:] else open(folder + "password", "rb").read()
login = base64.b64encode(b"gcluster:" + password).decode()
query = urllib.parse.urlencode({"query": sys.argv[1]})
asked = urllib.request.Request("https://localhost:9090/api/v1/query?" + query)
asked.add_header("Authorization", "Basic " + login)
context = ssl.create_default_context(cafile=folder + "ca.pem")
try:
    print(urllib.request.urlopen(asked, context=context, timeout=10).read().decode())
except urllib.error.HTTPError as refused:
    print(refused.code)
"""
