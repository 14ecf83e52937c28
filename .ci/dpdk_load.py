"""Traffic for check_dpdk.sh: dpdk_load.py receive | send ADDRESS SECONDS UDP_MBIT.

`receive` says that it is ready, takes TCP connections and datagrams, checks every byte of the connections,
and prints what came as JSON when it is terminated. `send` keeps four TCP flows under way, each of a size of its own, and datagrams at a fixed rate."""

import json
import selectors
import signal
import socket
import sys
import threading
import time

PORT = 9000
DATAGRAM = 1400
SIZES = (5_000, 50_000, 500_000, 5_000_000)
# A prime length, so that a segment that is lost, repeated or moved is noticed.
PATTERN = bytes(range(251)) * 64


def expected(start, length):
    begin = start % 251
    return PATTERN[begin : begin + length]


class Flow:
    """A connection and how much of it has come."""

    def __init__(self, connection):
        self.connection = connection
        self.bytes = 0

    def read(self):
        """Returns true if there is more to come."""
        data = self.connection.recv(8192)
        if data != expected(self.bytes, len(data)):
            sys.exit(f"bytes from {self.bytes} on are not those that were sent")
        self.bytes += len(data)
        return bool(data)


def receive():
    listener = socket.create_server(("", PORT), backlog=64)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("", PORT))
    selector = selectors.DefaultSelector()
    for source in (listener, datagrams):
        source.setblocking(False)
        selector.register(source, selectors.EVENT_READ)
    counts = {"flows": 0, "bytes": 0, "datagrams": 0}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(json.dumps(counts))))
    print("ready", file=sys.stderr, flush=True)
    while True:
        for key, _ in selector.select():
            serve(selector, key, listener, datagrams, counts)


def serve(selector, key, listener, datagrams, counts):
    if key.fileobj is listener:
        connection, _ = listener.accept()
        selector.register(connection, selectors.EVENT_READ, Flow(connection))
    elif key.fileobj is datagrams:
        datagrams.recv(2048)
        counts["datagrams"] += 1
    else:
        before = key.data.bytes
        more = key.data.read()
        counts["bytes"] += key.data.bytes - before
        if not more:
            counts["flows"] += 1
            selector.unregister(key.fileobj)
            key.fileobj.close()


def send_flows(address, size, end):
    while time.monotonic() < end:
        with socket.create_connection((address, PORT), timeout=30) as connection:
            sent = 0
            while sent < size and time.monotonic() < end:
                sent += connection.send(expected(sent, min(8192, size - sent)))


def send_datagrams(address, mbit, end):
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    interval = DATAGRAM * 8 / (mbit * 1e6)
    due = time.monotonic()
    while due < end:
        time.sleep(max(0, due - time.monotonic()))
        datagrams.sendto(bytes(DATAGRAM), (address, PORT))
        due += interval


def send(address, seconds, mbit):
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=send_flows, args=(address, size, end), daemon=True) for size in SIZES]
    if mbit > 0:
        threads.append(threading.Thread(target=send_datagrams, args=(address, mbit, end), daemon=True))
    for thread in threads:
        thread.start()
    # What waits for an answer then is left behind.
    for thread in threads:
        thread.join(max(0, end + 1 - time.monotonic()))


if sys.argv[1] == "receive":
    receive()
else:
    send(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
