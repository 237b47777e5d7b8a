"""An MCP server that wants a login, with its authorization server: `python login_server.py`; prints its port on a line.

Whoever comes to /authorize is logged in as the account in the cookie `account` ("somebody" without one), or refused if
that is "nobody". The tools are `whoami`, which tells whose token a call had, and `of_<account>`. With `open-lists`,
only calls need a token; with `pictures`, the tool `picture` gives everybody the same one. GET /seen tells the requests
with the account of each; POST /revoke-all ends all tokens.
"""

import base64
import hashlib
import json
import secrets
import sys
import threading
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

PICTURE = (  # of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

flags = set(sys.argv[1:])
codes = {}
tokens = {}
refreshes = {}
seen = []
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.connection.getsockname()[1]}"

    def do_GET(self):
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        match parts.path:
            case "/.well-known/oauth-protected-resource/mcp":
                self.reply({"resource": f"{self.origin}/mcp", "authorization_servers": [self.origin]})
            case "/.well-known/oauth-authorization-server":
                self.reply(
                    {
                        "issuer": self.origin,
                        "authorization_endpoint": f"{self.origin}/authorize",
                        "token_endpoint": f"{self.origin}/token",
                        "registration_endpoint": f"{self.origin}/register",
                        "response_types_supported": ["code"],
                        "code_challenge_methods_supported": ["S256"],
                        "token_endpoint_auth_methods_supported": ["none"],
                        "authorization_response_iss_parameter_supported": True,
                    }
                )
            case "/authorize":
                self.authorize(query)
            case "/seen":
                self.reply(seen)
            case "/mcp":
                self.reply({}, 405)
            case _:
                self.reply({}, 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        match urlsplit(self.path).path:
            case "/register":
                self.reply({**json.loads(body), "client_id": secrets.token_hex(4)}, 201)
            case "/token":
                self.token({key: values[0] for key, values in parse_qs(body.decode()).items()})
            case "/revoke-all":
                tokens.clear()
                refreshes.clear()
                self.reply({})
            case "/mcp":
                self.mcp(json.loads(body))
            case _:
                self.reply({}, 404)

    def do_DELETE(self):
        self.reply({}, 405)

    def authorize(self, query):
        cookies = SimpleCookie(self.headers.get("cookie") or "")
        account = cookies["account"].value if "account" in cookies else "somebody"
        answer = {"state": query["state"], "iss": self.origin}
        if account == "nobody":
            answer["error"] = "access_denied"
        else:
            answer["code"] = code = secrets.token_hex(8)
            codes[code] = {**query, "account": account}
        self.reply({}, 302, location=f"{query['redirect_uri']}?{urlencode(answer)}")

    def token(self, form):
        if form["grant_type"] == "refresh_token":
            account = refreshes.pop(form["refresh_token"], None)
        else:
            asked = codes.pop(form["code"], None)
            digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
            right = asked is not None and asked["code_challenge"] == digest.decode()
            account = asked["account"] if right and asked["redirect_uri"] == form["redirect_uri"] else None
        if account is None:
            self.reply({"error": "invalid_grant"}, 400)
            return
        access, refresh = (f"{kind}-{account}-{secrets.token_hex(8)}" for kind in ("access", "refresh"))
        tokens[access] = refreshes[refresh] = account
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh}
        self.reply(answer)

    def mcp(self, message):
        method = message.get("method", "")
        account = tokens.get((self.headers.get("authorization") or "").removeprefix("Bearer "))
        with lock:
            seen.append([method, account, self.headers.get("authorization")])
        if account is None and not ("open-lists" in flags and method != "tools/call"):
            where = f"{self.origin}/.well-known/oauth-protected-resource/mcp"
            self.reply({}, 401, **{"www-authenticate": f'Bearer resource_metadata="{where}"'})
        elif "id" not in message:
            self.reply({}, 202)
        else:
            self.reply({"jsonrpc": "2.0", "id": message["id"], **self.answered(method, message.get("params"), account)})

    def answered(self, method, params, account):
        match method:
            case "initialize":
                info = {"name": "login", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
                return {"result": {**result, "instructions": f"for {account}"}}
            case "tools/list":
                names = ["whoami", *([f"of_{account}"] if account else []), *(["picture"] * ("pictures" in flags))]
                return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}}
            case "tools/call" if params["name"] == "picture":
                return {"result": {"content": [{"type": "image", "data": PICTURE, "mimeType": "image/png"}]}}
            case "tools/call":
                return {"result": {"content": [{"type": "text", "text": f"you are {account}"}]}}
            case "ping":
                return {"result": {}}
            case _:
                return {"error": {"code": -32601, "message": "no"}}

    def reply(self, value, status=200, **headers):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        for name, given in headers.items():
            self.send_header(name, given)
        self.end_headers()
        self.wfile.write(content)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Ignore clients that are gone before they have the answer."""


server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
