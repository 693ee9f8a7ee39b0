"""A client for stated, written from docs/protocol.md alone. What is received is bytes; arguments may be str or int."""

import select
import socket
import time
from collections import deque
from dataclasses import dataclass


class Error(Exception):
    """An error reply. Programs decide by code, its first word."""

    def __init__(self, line):
        super().__init__(line)
        self.code = line.split(" ", 1)[0]


class Lost(ConnectionError):
    """The connection ended. The outcome of a write without a reply is unknown; replies holds those that arrived."""

    def __init__(self, reason, replies=()):
        super().__init__(reason)
        self.replies = replies


class Push(list):
    """A push: a frame that is not the reply to a request."""


class Parser:
    """RESP3, incremental: feed takes pieces of any size and returns the frames that are complete."""

    SIMPLE = {b"+": str, b"-": Error, b":": int, b"_": lambda rest: None}

    def __init__(self):
        self.data, self.at, self.needed = bytearray(), 0, 1  # needed: bytes that the next frame has at least

    def feed(self, piece):
        self.data += piece
        frames = []
        while len(self.data) >= self.needed:
            self.at = 0
            try:
                frames.append(self._frame())
            except EOFError:
                break
            del self.data[: self.at]
            self.needed = 1
        return frames

    def _take(self, end):
        if end > len(self.data):
            self.needed = end
            raise EOFError
        start, self.at = self.at, end
        return bytes(self.data[start : end - 2])

    def _frame(self):
        newline = self.data.find(b"\r\n", self.at)
        line = self._take(newline + 2 if newline >= 0 else len(self.data) + 1)
        kind, rest = line[:1], line[1:]
        if kind in self.SIMPLE:
            return self.SIMPLE[kind](rest.decode())
        match kind:
            case b"$":
                return self._take(self.at + int(rest) + 2)
            case b"*" | b">":
                elements = [self._frame() for _ in range(int(rest))]
                return Push(elements) if kind == b">" else elements
            case b"%":
                return {self._frame().decode(): self._frame() for _ in range(int(rest))}
        raise Lost(f"unexpected type {kind!r}")


def encode(*arguments):
    parts = [a if isinstance(a, bytes) else str(a).encode() for a in arguments]
    return b"".join([b"*%d\r\n" % len(parts), *(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)])


class Connection:
    """Requests, replies and pushes on one socket. For one thread at a time."""

    def __init__(self, path, name="python", timeout=30.0):
        self.timeout = timeout
        self.pushes, self.parser, self.replies = deque(), Parser(), []
        self.unsent, self.expected, self.ended = bytearray(), 0, None
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(path)
            self.call("HELLO", 3, "SETNAME", name)
        except BaseException:
            self.close()
            raise

    @classmethod
    def wait(cls, path, name="python", timeout=30.0):
        """Connects as soon as a daemon serves the path and accepts the connection."""
        deadline, pause = time.monotonic() + timeout, 0.05
        while True:
            try:
                return cls(path, name)
            except (OSError, Error) as error:
                is_full = str(error) == "ERR max number of clients reached"
                if getattr(error, "code", "LIMIT") != "LIMIT" and not is_full or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 2.0)

    def close(self):
        self.ended = "closed by this client"
        self.socket.close()

    def call(self, *arguments):
        reply = self.pipeline([arguments])[0]
        if isinstance(reply, Error):
            raise reply
        return reply

    def pipeline(self, requests):
        """Sends all requests at once; returns their replies, with errors in their places."""
        self.unsent += b"".join(encode(*request) for request in requests)
        self.expected += len(requests)
        deadline = time.monotonic() + self.timeout
        while self.expected:
            if not self._step(deadline):
                self.ended = "no reply in time"  # a late reply must not answer a later request
            if self.ended and self.expected:
                raise Lost(self.ended, self.replies)
        replies, self.replies = self.replies, []
        return replies

    def push(self, timeout):
        """The next push, or None if none comes in time."""
        deadline = time.monotonic() + timeout
        while not self.pushes:
            if self.ended:
                raise Lost(self.ended)
            if not self._step(deadline):
                return None
        return self.pushes.popleft()

    def _step(self, deadline):
        """Reads and writes once; reads while it writes. False at the deadline."""
        if self.ended:
            return True
        wait = max(deadline - time.monotonic(), 0)
        readable, writable, _ = select.select([self.socket], [self.socket] if self.unsent else [], [], wait)
        try:
            if writable:
                del self.unsent[: self.socket.send(self.unsent[: 1 << 18], socket.MSG_DONTWAIT)]
        except BlockingIOError:
            pass
        except ConnectionError:
            self.unsent.clear()  # the daemon is gone, but what it has sent is still to be read
        try:
            if readable:
                self._receive(self.socket.recv(1 << 18))
        except ConnectionError as error:
            self.ended = str(error)
        return bool(readable or writable)

    def _receive(self, piece):
        if not piece:
            self.ended = "the connection was closed"
        for frame in self.parser.feed(piece):
            if isinstance(frame, Push):
                self.pushes.append(frame)
            elif self.expected:
                self.expected -= 1
                self.replies.append(frame)
            else:
                self.ended = str(frame)  # an error without a request announces the end


class Client(Connection):
    """Values, conditions and transactions. Client.wait(path) connects."""

    def get(self, key):
        return self.call("GET", key)

    def entry(self, key):
        return self.call("STATE.GET", key)

    def set(self, key, value, *options):
        """Returns the revision of the commit. Options as on the page, for example "IFREV", 3."""
        return self.call("STATE.SET", key, value, *options)["revision"]

    def delete(self, *patterns):
        return self.call("STATE.DELETE", *patterns)["count"]

    def modify(self, key, change):
        """Compare-and-set: stores change(value), and repeats if another client was faster."""
        while True:
            entry = self.entry(key) or {"value": None, "revision": 0}
            try:
                return self.set(key, change(entry["value"]), "IFREV", entry["revision"])
            except Error as error:
                if error.code != "CONFLICT":
                    raise

    def apply(self, *steps):
        """One commit of steps: ("SET", key, value), ("DELETE", key), ("CHECK", key, revision)."""
        return self.call("STATE.APPLY", len(steps), *(word for step in steps for word in step))

    def transaction(self, *commands):
        """MULTI … EXEC: the replies, or None if a key that was named to WATCH has changed. An error undoes all."""
        for reply in self.pipeline([("MULTI",), *commands]):
            if isinstance(reply, Error):
                self.call("DISCARD")
                raise reply
        return self.call("EXEC")


@dataclass
class Commit:
    revision: int
    changes: list  # [key, value] each; a value of None: the key was deleted


@dataclass
class State:
    revision: int
    table: dict
    gap: bool  # commits before it are missing


class Watch:
    """Delivers State and Commit events; values is the table, position the last revision that was delivered."""

    def __init__(self, path, *patterns, position=None, epoch=None):
        self.path, self.patterns, self.position, self.epoch = path, patterns, position, epoch
        self.connection, self.pieces, self.gap, self.values = None, {}, False, {}

    def close(self):
        self.connection = self.connection and self.connection.close()

    def next(self, timeout=30.0):
        """The next event, or None if none comes in time. Connects again if the connection is lost."""
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            try:
                if not self.connection:
                    self.start(left)
                if (push := self.connection.push(left)) and (event := self._take(push)):
                    return event
            except Lost:
                self.close()
        return None

    def start(self, timeout=30.0):
        """Connects, and returns the revision at which the watch began: position has it when it has caught up."""
        self.connection = Connection.wait(self.path, timeout=timeout)
        self._find_position()
        where = ["SNAPSHOT"] if self.position is None else ["FROM", self.position, "EPOCH", self.epoch]
        reply = self.connection.call("STATE.WATCH", *self.patterns, *where)
        if reply["epoch"].decode() != self.epoch:
            self.position = None  # it belongs to another store; a gap or the snapshot follows
        self.number, self.epoch, self.pieces, self.gap = reply["watch"], reply["epoch"].decode(), {}, False
        return reply["revision"]

    def _find_position(self):
        """A plain watch keeps its position itself."""

    def _take(self, push):
        kind, number, revision, changes = (*push, None, None, None)[:4]  # pushes of unknown kinds may be shorter
        if number != self.number:
            return None
        if kind == b"state.gap":
            self.pieces, self.gap, self.position = {}, True, None
        elif kind == b"state.progress":
            self.position = revision
        elif kind == b"state.synced":
            self.values, self.pieces, self.position = self.pieces, {}, revision
            state, self.gap = State(revision, dict(self.values), self.gap), False
            return state
        elif kind == b"state.change":
            table = self.values if revision else self.pieces
            for key, value, *_ in changes:
                if value is None:
                    table.pop(key, None)
                else:
                    table[key] = value
            if revision:
                self.position = revision
                return Commit(revision, changes)


class Handler(Watch):
    """A watch that begins behind the last event that was done; a new one begins with the state. values is not kept."""

    def __init__(self, path, name, *patterns):
        super().__init__(path, *patterns)
        self.name = name

    def _find_position(self):
        reply = self.connection.call("STATE.HANDLER", "ATTACH", self.name, "SNAPSHOT", *self.patterns)
        self.position, self.epoch = reply["position"], reply["epoch"].decode()

    def done(self, event):
        """Everything up to this event is handled; on stable storage when it returns."""
        self.connection.call("STATE.HANDLER", "DONE", self.name, event.revision)
