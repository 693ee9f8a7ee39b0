"""The protocol of stated, for scripts/cluster-check: RESP3 on a Unix socket."""

import select
import socket
import time


class Failure(Exception):
    """What the check has found."""


class Refusal(Exception):
    """An error of the daemon."""


class Push(list):
    """What comes unasked."""


class Incomplete(Exception):
    pass


class Session:
    """One connection, and what was answered to it."""

    def __init__(self, path, timeout=25, version=2):
        self.timeout, self.buffer, self.place = timeout, bytearray(), 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(path)
            if version == 3:
                self.ask("HELLO", "3")
        except BaseException:
            self.socket.close()
            raise

    def close(self):
        self.socket.close()

    def send(self, *words):
        encoded = [word.encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in encoded))

    def ask(self, *words):
        """The reply; an error is raised."""
        self.send(*words)
        reply = self.next(self.timeout)
        if isinstance(reply, Refusal):
            raise reply
        return reply

    def next(self, seconds):
        """What comes next, within so many seconds; `OSError` if the connection has ended, `TimeoutError` if nothing came."""
        deadline = time.monotonic() + seconds
        while True:
            self.place = 0
            try:
                found = self.parse()
                del self.buffer[:self.place]
                return found
            except Incomplete:
                pass
            if not select.select([self.socket], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("nothing came")
            received = self.socket.recv(1 << 18)
            if not received:
                raise ConnectionError("the daemon has closed the connection")
            self.buffer += received

    def line(self):
        end = self.buffer.find(b"\r\n", self.place)
        if end < 0:
            raise Incomplete
        line, self.place = bytes(self.buffer[self.place:end]), end + 2
        return line

    def parse(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return self.bulk(int(rest))
        if kind == b":":
            return int(rest)
        if kind in (b"*", b">"):
            if rest == b"-1":
                return None
            found = [self.parse() for _ in range(int(rest))]
            return Push(found) if kind == b">" else found
        if kind == b"%":
            return {self.parse().decode(): self.parse() for _ in range(int(rest))}
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Refusal(rest.decode())
        if kind == b"_":
            return None
        raise Failure(f"the daemon replies {line!r}")

    def bulk(self, length):
        if length < 0:
            return None
        end = self.place + length
        if len(self.buffer) < end + 2:
            raise Incomplete
        found, self.place = bytes(self.buffer[self.place:end]), end + 2
        return found


class Daemon:
    """A connection for each command: the daemon may have been killed."""

    def __init__(self, path):
        self.path = path

    def ask(self, *words):
        session = Session(self.path, 20)
        try:
            return session.ask(*words)
        finally:
            session.close()

    def status(self):
        reply = self.ask("STATE.STATUS")
        return {reply[i].decode(): reply[i + 1] for i in range(0, len(reply), 2)}
