"""A daemon with an empty store in a directory of its own, and a relay for suites that insist on a host and a port."""
import asyncio
import ctypes
import fcntl
import glob
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time


def is_apart():
    return "STATED_SUITES_NETWORK" in os.environ


def start_apart(words):
    """Starts a program in a network of its own, where every port is free and nothing is reached.

    Suites insist on ports, as 6379, on which the machine may have a server that must not be used.
    """
    apart = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    return subprocess.Popen([*apart, *words], env=dict(os.environ, STATED_SUITES_NETWORK="1"), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def enter_network():
    """Makes the addresses of this machine work in a network of its own."""
    with socket.socket() as opened:
        request = struct.pack("16sh14x", b"lo", 0x41)  # IFF_UP and IFF_RUNNING
        fcntl.ioctl(opened, 0x8914, request)  # SIOCSIFFLAGS


def adopt_orphans():
    """Makes this program the parent of all whose parents end among its descendants, and SIGTERM an orderly end."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def children():
    """The pids of the processes whose parent is this one."""
    paths = glob.glob("/proc/self/task/*/children")
    return {int(pid) for path in paths for pid in pathlib.Path(path).read_text().split()}


class Daemon:
    """A daemon that serves `path`, and ends with its store at the end of `with`; both in a folder of `parent`."""

    def __init__(self, parent=None):
        self.parent = parent

    def __enter__(self):
        self.place = tempfile.TemporaryDirectory(prefix="stated-suite", dir=self.parent)
        self.path = os.path.join(self.place.name, "s")
        self.log = open(os.path.join(self.place.name, "log"), "w+")
        words = [os.environ["STATED"], "--socket", self.path, "--data", self.place.name + "/data"]
        self.process = subprocess.Popen(words, stderr=self.log)
        deadline = time.monotonic() + 30
        while True:
            with socket.socket(socket.AF_UNIX) as peer:
                try:
                    peer.connect(self.path)
                    return self
                except OSError:
                    if time.monotonic() > deadline or self.process.poll() is not None:
                        raise
            time.sleep(0.02)

    def __exit__(self, kind, *_):
        died = None if kind else self.process.poll()
        self.process.terminate()
        self.process.wait()
        if died is not None:
            self.log.seek(0)
            print(self.log.read()[-4000:])
        self.log.close()
        self.place.cleanup()
        if died is not None:
            raise SystemExit(f"the daemon ended by itself, with {died}")


class Relay:
    """Carries what comes to TCP ports to a Unix socket, and back, until the end of `with`.

    With `one_database` a SELECT of any database is one of database 0.
    """

    SELECT = re.compile(rb"(SELECT\r\n)\$\d+\r\n\d+\r\n")

    def __init__(self, path, ports, one_database=False):
        self.path, self.ports, self.one_database = path, ports, one_database

    def __enter__(self):
        self.loop, self.servers = asyncio.new_event_loop(), []
        for port in self.ports:
            for host in ("127.0.0.1", "::1"):
                try:
                    server = self.loop.run_until_complete(asyncio.start_server(self.carry, host, port))
                    self.servers.append(server)
                except OSError:
                    # A machine may have no IPv6.
                    if host != "::1":
                        raise
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        for server in self.servers:
            server.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0.01))
        self.loop.close()

    async def carry(self, reader, writer):
        try:
            back, forth = await asyncio.open_unix_connection(self.path)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, forth, self.change), copy(back, writer))

    def change(self, data):
        return self.SELECT.sub(rb"\1$1\r\n0\r\n", data) if self.one_database else data


class Link:
    """A symbolic link to the socket at the path that a suite insists on, if it does, until the end of `with`."""

    def __init__(self, path, link):
        self.path, self.link = path, link

    def __enter__(self):
        if not self.link:
            return
        if os.path.islink(self.link) and not os.path.exists(self.link):
            os.unlink(self.link)  # left behind by a run that was killed
        os.symlink(self.path, self.link)

    def __exit__(self, *_):
        if self.link:
            os.unlink(self.link)


async def copy(reader, writer, change=bytes):
    try:
        while data := await reader.read(1 << 18):
            writer.write(change(data))
            await writer.drain()
    except OSError:
        pass
    writer.close()
