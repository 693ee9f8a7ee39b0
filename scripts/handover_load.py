#!/usr/bin/env python3
"""Clients under load, for scripts/boot-test: python3 handover_load.py SOCKET CLIENTS STOPFILE

Each client counts with INCR, sets and reads a key of its own, and compares every reply; one in ten watches the key of
another one, and compares every change. They go on until the file STOPFILE is there. Then one line says how many commands
were answered, how many errors and closed connections there were, and the longest time in milliseconds that a client
waited for a reply.
"""

import os
import selectors
import socket
import sys
import time


class Client:
    def __init__(self, path, number):
        self.number = number
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.setblocking(False)
        self.watches = number % 10 == 9
        self.input = b""
        self.round = 0
        self.answered = 0
        self.longest = 0.0
        self.asked = 0.0
        self.last = None
        self.problem = None
        self.is_closed = False
        if self.watches:
            self.send(b"HELLO 3\r\nSTATE.WATCH load/%d\r\n" % (number - 1))
        else:
            self.ask()

    def send(self, data):
        self.asked = time.monotonic()
        self.socket.sendall(data)

    def ask(self):
        self.round += 1
        key = b"load/%d" % self.number
        self.send(b"INCR %s\r\nSET k/%d v%d\r\nGET k/%d\r\n" % (key, self.number, self.round, self.number))

    def receive(self):
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError as error:
            self.is_closed, self.problem = True, str(error)
            return
        if not data:
            self.is_closed = True
            return
        self.longest = max(self.longest, time.monotonic() - self.asked)
        self.asked = time.monotonic()
        self.input += data
        if self.watches:
            self.take_changes()
        else:
            self.take_replies()

    def take_replies(self):
        value = b"v%d" % self.round
        wanted = b":%d\r\n+OK\r\n$%d\r\n%s\r\n" % (self.round, len(value), value)
        if len(self.input) < len(wanted) and wanted.startswith(self.input):
            return
        if self.input != wanted:
            self.problem = f"expected {wanted}, got {self.input}"
            return
        self.input = b""
        self.answered += 3
        self.ask()

    def take_changes(self):
        """The value of each change is one more than that of the one before."""
        if b"state.gap" in self.input or b"\r\n-" in self.input:
            self.problem = f"got {self.input}"
        key = b"load/%d\r\n" % (self.number - 1)
        while key in self.input:
            before, after = self.input.split(key, 1)
            parts = after.split(b"\r\n", 2)
            if len(parts) < 3:
                return
            value = int(parts[1])
            if self.last is not None and value != self.last + 1:
                self.problem = f"{value} follows {self.last}"
            self.last, self.input = value, parts[2]
            self.answered += 1


def main():
    path, count, stop = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    clients = [Client(path, number) for number in range(count)]
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, client)
    print("started", flush=True)
    while not os.path.exists(stop):
        for key, _ in selector.select(0.1):
            client = key.data
            client.receive()
            if client.is_closed or client.problem:
                selector.unregister(client.socket)
    now = time.monotonic()
    open_ones = [client for client in clients if not client.is_closed and not client.problem]
    longest = max([client.longest for client in clients] + [now - client.asked for client in open_ones])
    problems = [client.problem for client in clients if client.problem]
    for problem in problems[:3]:
        print(problem[:300], file=sys.stderr)
    closed = sum(client.is_closed for client in clients)
    answered = sum(client.answered for client in clients)
    print(f"answered {answered} errors {len(problems)} closed {closed} longest {longest * 1000:.0f}", flush=True)


main()
