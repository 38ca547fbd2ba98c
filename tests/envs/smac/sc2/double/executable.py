"""Stands in for the game's executable: a websocket at the port it is told, as the game has one.

What comes in goes to the process that runs the tests, which says what to do about it. Only the
standard library is used, so that it starts at once. As the game, it does not end when its client
goes away, but when it is told to quit, or is killed.
"""

import base64
import hashlib
import os
import signal
import socket
import struct
import sys
from multiprocessing.connection import Client, Connection

BINARY, CLOSE = 2, 8
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def main() -> None:
    """Serves one client after the other."""
    host, arguments = sys.argv[1], sys.argv[2:]
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    with socket.create_server((options["-listen"], int(options["-port"]))) as server:
        battle = Client(host, "AF_UNIX")
        battle.send(os.getpid())
        while True:
            client, _ = server.accept()
            with client:
                serve(client, battle)


def serve(client: socket.socket, battle: Connection) -> None:
    """Has the other process answer the client's messages."""
    with client.makefile("rb") as stream:
        shake_hands(client, stream)
        while (request := receive(stream)) is not None:
            battle.send_bytes(request)
            what, answer = battle.recv()
            if what == "answer":
                send(client, answer)
            elif what == "close":
                return
            elif what == "hang":
                signal.pause()
            elif what == "die":
                sys.exit("Out of memory.")
            else:
                sys.exit()


def shake_hands(client: socket.socket, stream) -> None:
    lines = iter(lambda: stream.readline().strip(), b"")
    assert next(lines) == b"GET /sc2api HTTP/1.1"
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(b":") for x in lines)}
    accept = base64.b64encode(hashlib.sha1(headers[b"sec-websocket-key"] + MAGIC).digest())
    client.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )


def receive(stream) -> bytes | None:
    """A whole message, whatever its type; nothing if the client has gone."""
    header = stream.read(2)
    if len(header) < 2 or header[0] & 15 == CLOSE:
        return None
    assert header[0] & 128, "pysc2 never sends a message in pieces"
    size = header[1] & 127
    if size > 125:
        form = ">H" if size == 126 else ">Q"
        (size,) = struct.unpack(form, stream.read(struct.calcsize(form)))
    mask = stream.read(4)
    repeated = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(stream.read(size), "big") ^ repeated).to_bytes(size, "big")


def send(client: socket.socket, message: bytes) -> None:
    size = len(message)
    if size < 126:
        header = struct.pack(">BB", 128 | BINARY, size)
    elif size < 2**16:
        header = struct.pack(">BBH", 128 | BINARY, 126, size)
    else:
        header = struct.pack(">BBQ", 128 | BINARY, 127, size)
    client.sendall(header + message)


if __name__ == "__main__":
    main()
