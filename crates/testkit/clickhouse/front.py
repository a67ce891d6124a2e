"""ClickHouse's own engine behind as much of its HTTP interface as clients need.

The engine is that of the PyPI package `chdb-core`: the real one, inside this process. In front of it stands what a server does with a request:
the query in the address or the body, parameters (`param_x`), settings, the database, user and password, and errors as ClickHouse
reports them. One query at a time. What is not here: native protocol, compression, sessions, progress headers.

    front.py DIRECTORY [--port N] [--user NAME --password WORD] [--throw-away]

Says `listening PORT` when it answers, and ends when its standard input does, so that no engine outlives the test that started it. With
`--throw-away` it then deletes the directory too.
"""

import argparse
import base64
import os
import re
import shutil
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb import session

# What in an address is for the server and no setting of the query.
FOR_SERVER = {
    "query", "database", "user", "password", "default_format", "query_id", "session_id", "wait_end_of_query", "buffer_size", "compress",
    "decompress", "enable_http_compression",
}
READING = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(SELECT|WITH|SHOW|DESCRIBE|DESC|EXPLAIN|EXISTS)\b", re.IGNORECASE | re.DOTALL)
STATUS_OF_CODE = {516: 403, 497: 403, 60: 404, 81: 404, 62: 400, 457: 400}


class Failure(Exception):
    """What a client is told: a code of ClickHouse and words."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


class Engine:
    """The engine, for one query at a time."""

    def __init__(self, directory):
        self.lock = threading.Lock()
        self.session = session.Session(directory)
        self.database = "default"

    def run(self, query, database, parameters, settings, form):
        """The answer's bytes, and how many rows and bytes were read for it."""
        with self.lock:
            done = []
            try:
                self.use(database)
                for name, value in settings.items():
                    self.ask(f"SET {identifier(name)} = {quoted(value)}")
                    done.append(name)
                return self.ask(query, form, parameters)
            finally:
                for name in done:
                    self.ask(f"SET {identifier(name)} = DEFAULT")

    def use(self, database):
        if database != self.database:
            self.ask(f"USE {identifier(database)}")
            self.database = database

    def ask(self, query, form="TabSeparated", parameters=None):
        try:
            result = self.session.query(query, form, params=parameters or None)
        except Exception as error:  # whatever the engine raises is an error of the query
            message = str(error)
            if "UNKNOWN_DATABASE" in message:
                self.database = "default"
                self.session.query("USE default")
            code = re.search(r"Code: (\d+)", message)
            raise Failure(int(code.group(1)) if code else 1002, message) from error
        answer = result.bytes() if result is not None else b""
        return answer or b"", result.rows_read() if result is not None else 0, result.bytes_read() if result is not None else 0


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    # Without it answers wait for acknowledgements of their headers.
    disable_nagle_algorithm = True
    wbufsize = -1
    engine = None
    credentials = None

    def do_GET(self):
        if urlsplit(self.path).path in ("/", "/ping") and not urlsplit(self.path).query:
            return self.answer(200, b"Ok.\n")
        return self.query(may_write=False)

    def do_POST(self):
        return self.query(may_write=True)

    def query(self, may_write):
        asked = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            self.check(asked)
            query = asked.get("query", "")
            query = f"{query}\n{body.decode('utf-8', 'surrogateescape')}" if query and body else query or body.decode()
            settings = {name: value for name, value in asked.items() if name not in FOR_SERVER and not name.startswith("param_")}
            if (settings.pop("readonly", "0") != "0" or not may_write) and not READING.match(query):
                raise Failure(164, "Code: 164. DB::Exception: Cannot execute query in readonly mode. (READONLY)")
            parameters = {name[6:]: value for name, value in asked.items() if name.startswith("param_")}
            database = self.headers.get("x-clickhouse-database") or asked.get("database") or "default"
            form = asked.get("default_format", "TabSeparated")
            answer, rows, size = self.engine.run(query, database, parameters, settings, form)
        except Failure as failure:
            code = str(failure.code)
            return self.answer(STATUS_OF_CODE.get(failure.code, 500), failure.message.encode(), [("X-ClickHouse-Exception-Code", code)])
        summary = f'{{"read_rows":"{rows}","read_bytes":"{size}"}}'
        return self.answer(200, answer, [("X-ClickHouse-Summary", summary)])

    def check(self, asked):
        if self.credentials is None:
            return
        user, password = self.headers.get("x-clickhouse-user"), self.headers.get("x-clickhouse-key")
        kind, _, given = (self.headers.get("authorization") or "").partition(" ")
        if kind.lower() == "basic":
            user, _, password = base64.b64decode(given).decode().partition(":")
        if (user or asked.get("user", "default"), password or asked.get("password", "")) != self.credentials:
            raise Failure(516, "Code: 516. DB::Exception: Authentication failed: password is incorrect. (AUTHENTICATION_FAILED)")

    def answer(self, status, body, headers=()):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    """Takes many connections at once, and no notice of clients that go away: tests kill them."""

    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def identifier(name):
    return "`" + name.replace("`", "") + "`"


def quoted(value):
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def end_with_input(to_delete):
    while sys.stdin.buffer.read(4096):
        pass
    if to_delete:
        shutil.rmtree(to_delete, ignore_errors=True)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--user")
    parser.add_argument("--password", default="")
    parser.add_argument("--throw-away", action="store_true")
    options = parser.parse_args()
    to_delete = options.directory if options.throw_away else None
    threading.Thread(target=end_with_input, args=(to_delete,), daemon=True).start()
    Handler.engine = Engine(options.directory)
    Handler.credentials = (options.user, options.password) if options.user else None
    server = Server(("127.0.0.1", options.port), Handler)
    print(f"listening {server.server_port}", flush=True)
    server.serve_forever()


main()
