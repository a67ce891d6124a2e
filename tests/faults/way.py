"""The way between a node and a server: it can be made slow, let nothing through, lead elsewhere, or answer for the server.

Runs as a process of its own, because what passes must not wait for the threads that make the load. `Way` starts it and gives it orders,
one line each:

    open        everything passes; what was held back goes on, as after a network that was away
    silent      nothing passes, and nothing says so: connections stay open
    slow MS     what the server says comes so much later
    lead PORT   new connections go there, and the old ones end
    full        requests of HTTP are answered as by a ClickHouse whose disk is full
"""

import asyncio
import subprocess
import sys

PIECE_BYTES = 64 * 1024
FULL_DISK = b"Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE)\n"


class Way:
    """A way that runs. Clients connect to `port`."""

    def __init__(self, target: int):
        command = [sys.executable, __file__, str(target)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def order(self, line: str) -> None:
        """Returns when the order holds."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        done = self.process.stdout.readline().strip()
        if done != "done":
            raise RuntimeError(f"the way did not take the order {line!r}: {done or 'it has ended'}")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Crossing:
    """What holds for all connections of a way."""

    def __init__(self, target: int):
        self.target = target
        self.delay = 0.0
        self.is_full = False
        self.passing = asyncio.Event()
        self.passing.set()
        self.connections: set[asyncio.StreamWriter] = set()

    def obey(self, line: str) -> None:
        match line.split():
            case ["open"]:
                self.delay, self.is_full = 0.0, False
                self.passing.set()
            case ["silent"]:
                self.passing.clear()
            case ["slow", milliseconds]:
                self.delay = int(milliseconds) / 1000
            case ["lead", port]:
                self.target = int(port)
                self.end_connections()
            case ["full"]:
                self.is_full = True
                self.end_connections()
            case _:
                raise ValueError(f"unknown order {line!r}")

    def end_connections(self) -> None:
        for writer in self.connections:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(writer)
        try:
            await self.passing.wait()
            await (self.refuse(reader, writer) if self.is_full else self.join(reader, writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.connections.discard(writer)
            writer.close()

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self.connections.add(back)
        ways = [asyncio.create_task(self.carry(reader, back, False)), asyncio.create_task(self.carry(there, writer, True))]
        try:
            # Where one side ends, the other one has nobody to speak to.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            self.connections.discard(back)
            back.close()

    async def carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, is_answer: bool) -> None:
        """Pieces keep their order and their distance: a slow way is long, not narrow."""
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=1024)
        releasing = asyncio.create_task(self.release(pieces, sink))
        try:
            piece = b"none yet"
            while piece:
                piece = await source.read(PIECE_BYTES)
                due = asyncio.get_running_loop().time() + (self.delay if is_answer else 0.0)
                await pieces.put((due, piece))
            await releasing
        except OSError:
            pass
        finally:
            releasing.cancel()

    async def release(self, pieces: asyncio.Queue, sink: asyncio.StreamWriter) -> None:
        """Until the empty piece, which is the end."""
        while True:
            due, piece = await pieces.get()
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            await self.passing.wait()
            if not piece:
                return
            sink.write(piece)
            await sink.drain()

    async def refuse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await self.skip_body(head, reader)
        writer.write(b"HTTP/1.1 500 Internal Server Error\r\nx-clickhouse-exception-code: 243\r\nconnection: close\r\n")
        writer.write(b"content-type: text/plain\r\ncontent-length: %d\r\n\r\n" % len(FULL_DISK) + FULL_DISK)
        await writer.drain()
        writer.write_eof()
        await reader.read()

    async def skip_body(self, head: bytes, reader: asyncio.StreamReader) -> None:
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name == b"content-length":
                await reader.readexactly(int(value))
            if name == b"transfer-encoding" and b"chunked" in value:
                while size := int((await reader.readline()).split(b";")[0], 16):
                    await reader.readexactly(size + 2)
                await reader.readline()


async def main() -> None:
    crossing = Crossing(int(sys.argv[1]))
    server = await asyncio.start_server(crossing.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    # It ends when whoever gives orders has ended.
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        crossing.obey(line)
        print("done", flush=True)
    crossing.end_connections()


if __name__ == "__main__":
    asyncio.run(main())
