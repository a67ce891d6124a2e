"""A way to a server that counts the bytes that pass, where the server itself does not count them."""

import socket
import threading

PIECE_BYTES = 256 * 1024


class Tally:
    """Clients connect to `port`. It ends with the program."""

    def __init__(self, target: int):
        self.target = target
        self.passed_bytes = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            for source, sink in ((client, server), (server, client)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    def carry(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(PIECE_BYTES):
                with self.lock:
                    self.passed_bytes += len(piece)
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self.listener.close()
