"""Forwards frames between two interfaces of this network namespace, late and with losses.

usage: delay.py INTERFACE_A INTERFACE_B DELAY_MS JITTER_MS LOSS

Stands in for the kernel's netem where that is not built. Frames keep their order, as they do on one cable.
"""

import heapq
import random
import select
import socket
import sys
import time

ETH_P_ALL = 3
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
RECEIVE_BUFFER = 8 << 20
LARGEST_FRAME = 70_000
# Frames read at one go: enough to empty a burst, few enough to send what has become due.
BATCH = 256


def open_interface(name):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.bind((name, ETH_P_ALL))
    sock.setblocking(False)
    # Without it each forwarded frame would be read back and forwarded again, for ever.
    sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    return sock


def main():
    a, b = open_interface(sys.argv[1]), open_interface(sys.argv[2])
    delay, jitter, loss = float(sys.argv[3]) / 1e3, float(sys.argv[4]) / 1e3, float(sys.argv[5])
    waiting, sequence, last_due = [], 0, {a: 0.0, b: 0.0}
    while True:
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, out, frame = heapq.heappop(waiting)
            try:
                out.send(frame)
            except OSError:
                pass  # the cable is down
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for source in select.select([a, b], [], [], timeout)[0]:
            for _ in range(BATCH):
                try:
                    frame = source.recv(LARGEST_FRAME)
                except BlockingIOError:
                    break
                if random.random() < loss:
                    continue
                out = b if source is a else a
                last_due[out] = max(time.monotonic() + delay + random.uniform(-jitter, jitter), last_due[out])
                sequence += 1
                heapq.heappush(waiting, (last_due[out], sequence, out, frame))


main()
