"""A daemon with an empty store in a directory of its own, and a relay for suites that insist on a host and a port."""
import asyncio
import fcntl
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time


def enter_network():
    """Starts this program again in a network of its own, where every port is free and nothing is reached.

    Suites insist on ports, as 6379, on which the machine may have a server that must not be used.
    """
    if os.environ.get("STATED_SUITES_NETWORK"):
        with socket.socket() as opened:
            request = struct.pack("16sh14x", b"lo", 0x41)  # IFF_UP and IFF_RUNNING
            fcntl.ioctl(opened, 0x8914, request)  # SIOCSIFFLAGS
        return
    os.environ["STATED_SUITES_NETWORK"] = "1"
    words = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    os.execvp("unshare", [*words, sys.executable, "-B", *sys.argv])


class Daemon:
    """A daemon that serves `path`, and ends with its store at the end of `with`."""

    def __enter__(self):
        self.place = tempfile.TemporaryDirectory(prefix="stated-suite")
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

    def __exit__(self, *_):
        died = self.process.poll()
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
    """Carries what comes to TCP ports to a Unix socket, and back, until the end of `with`."""

    def __init__(self, path, ports):
        self.path, self.ports = path, ports

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
        await asyncio.gather(copy(reader, forth), copy(back, writer))


async def copy(reader, writer):
    try:
        while data := await reader.read(1 << 18):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
