"""The HTTP server: which path does what, and the web server's own lines."""

import http.server
import json
import os
import threading
import time
from http import HTTPStatus

from vllm import __version__, log
from vllm.answers import BadRequest, Chat, Completion
from vllm.engine import EngineDead
from vllm.text import chat_tokens, tokens

LARGEST_BODY = 64 << 20


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, args):
        super().__init__((args.host, args.port), Handler, bind_and_activate=False)
        self.args = args
        self.created = int(time.time())
        self.engine = None

    def claim_port(self):
        # The parent's server_bind looks up a name, which takes long without a name server.
        self.socket.setsockopt(1, 2, 1)  # SO_REUSEADDR
        self.socket.bind(self.server_address)

    def run(self, engine):
        self.engine = engine
        threading.Thread(target=engine.report_for_ever, daemon=True).start()
        log.api(f"Starting vLLM server on http://{self.args.host}:{self.args.port}", "entry.py:140")
        log.api("Available routes are:", "launcher.py:186")
        for method, routes in (("GET", Handler.gets), ("POST", Handler.posts)):
            for route in routes:
                log.api(f"Route: {route}, Methods: {method}", "launcher.py:195")
        log.uvicorn(f"Started server process [{os.getpid()}]")
        log.uvicorn("Waiting for application startup.")
        self.server_activate()
        log.uvicorn("Application startup complete.")
        self.serve_forever()

    def handle_error(self, request, client_address):
        """A client that went away is no news."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.route(self.gets, self.posts)

    def do_POST(self):
        self.route(self.posts, self.gets)

    def route(self, routes, others):
        path = self.path.split("?")[0]
        body = self.rfile.read(min(int(self.headers.get("content-length") or 0), LARGEST_BODY))
        keys = self.server.args.api_key
        if path.startswith("/v1") and keys and self.headers.get("authorization") not in [f"Bearer {key}" for key in keys]:
            self.send_json(401, {"error": "Unauthorized"})
        elif path in routes:
            try:
                routes[path](self, body)
            except BadRequest as error:
                self.send_error_object(error.status, str(error), error.kind, error.param)
            except EngineDead as error:
                self.send_error_object(500, error.message, "InternalServerError", None)
        elif path in others:
            self.send_json(405, {"detail": "Method Not Allowed"})
        else:
            self.send_json(404, {"detail": "Not Found"})

    # Answers

    def start(self, status, content_type, length=None):
        log.access(f'{self.client_address[0]}:{self.client_address[1]} - "{self.requestline}" {status} {HTTPStatus(status).phrase}')
        self.send_response_only(status)
        self.send_header("date", self.date_time_string())
        self.send_header("server", "uvicorn")
        if length is not None:
            self.send_header("content-length", str(length))
        if content_type:
            self.send_header("content-type", content_type)
        self.send_header("vary", "Origin")
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def send_body(self, status, content_type, body):
        self.start(status, content_type, len(body))
        self.wfile.write(body)

    def send_json(self, status, value):
        self.send_body(status, "application/json", compact(value).encode())

    def send_error_object(self, status, message, kind, param):
        self.send_json(status, error_object(status, message, kind, param))

    def send_events(self, chunks):
        """A stream of server-sent events. An engine that dies in it has an error object for its last words, after status 200."""
        self.start(200, "text/event-stream; charset=utf-8")
        try:
            for chunk in chunks:
                self.send_event(compact(chunk))
        except EngineDead as error:
            self.send_event(compact(error_object(500, error.message, "InternalServerError", None)))
        self.send_event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def send_event(self, data):
        event = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))

    def log_message(self, *_):
        """The parent's lines; ours are written in start."""

    # Paths

    def health(self, _body):
        self.send_body(503 if self.server.engine.dead.is_set() else 200, None, b"")

    def version(self, _body):
        self.send_json(200, {"version": __version__})

    def metrics(self, _body):
        self.send_body(200, "text/plain; version=1.0.0; charset=utf-8", self.server.engine.metrics.text().encode())

    def models(self, _body):
        args = self.server.args
        self.send_json(200, {"object": "list", "data": [
            {"id": name, "object": "model", "created": self.server.created, "owned_by": "vllm", "root": args.model_tag,
             "parent": None, "max_model_len": args.max_model_len, "permission": []}
            for name in args.served_model_name]})

    def tokenize(self, body):
        request = parse(body)
        counted = chat_tokens(request["messages"]) if "messages" in request else tokens(request.get("prompt") or "")
        self.send_json(200, {"count": len(counted), "max_model_len": self.server.args.max_model_len, "tokens": counted,
                             "token_strs": None})

    def completions(self, body):
        self.answer(Completion(parse(body), self.server.args))

    def chat_completions(self, body):
        self.answer(Chat(parse(body), self.server.args))

    def answer(self, answer):
        generated = answer.generated_by(self.server.engine)
        try:
            if answer.stream:
                self.send_events(answer.chunks(generated))
            else:
                self.send_json(200, answer.whole(generated))
        finally:
            # A client that has gone away leaves the generator half used; closing it frees the place and counts the abort.
            generated.close()

    gets = {"/health": health, "/version": version, "/metrics": metrics, "/v1/models": models}
    posts = {"/tokenize": tokenize, "/v1/completions": completions, "/v1/chat/completions": chat_completions}


def parse(body):
    try:
        request = json.loads(body)
    except ValueError:
        raise BadRequest("JSON decode error", "body", kind="Bad Request") from None
    if not isinstance(request, dict):
        raise BadRequest("Input should be an object", "body", kind="Bad Request")
    return request


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def error_object(status, message, kind, param):
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}
