"""What makes each alert of stated fire, for scripts/prometheus_test.py."""

import os
import socket
import sqlite3
import subprocess
import threading
import time


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def command(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Case:
    """A daemon with a port for its metrics, and what happens to it."""

    name = "well"
    # What fires, in words what causes it, and what may fire as well.
    alert = None
    what = ""
    also = ()
    # Why it may not be possible.
    needs = ""
    configuration = "{}"

    @staticmethod
    def is_possible():
        return True

    def __init__(self, programs, directory):
        os.mkdir(directory)
        self.programs, self.directory, self.port = programs, directory, free_port()
        self.path, self.data = f"{directory}/s", f"{directory}/data"
        self.daemon = self.server = None
        self.sockets = []
        self.ending = threading.Event()
        self.thread = None

    # The daemon

    def start(self):
        self.prepare()
        with open(f"{self.directory}/c.json5", "w") as file:
            file.write(self.configuration)
        self.start_daemon()
        # As stated-metrics.socket and stated-metrics@.service do it.
        words = ["systemd-socket-activate", "--accept", "--inetd", "--listen", f"127.0.0.1:{self.port}"]
        words += [f"{self.programs}/statectl", "--socket", self.path, "--reply-timeout", "5s", "metrics", "--http"]
        self.server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log())
        # A handler, an error and a change, so that each metric has a value.
        self.statectl("watch", "h/", "--name", "h", "--count", "1", "--timeout", "1ms", "--", "true")
        self.statectl("set", "h/a", "1")
        self.statectl("set", "h/a", "1", "--if-absent")

    def prepare(self):
        pass

    def start_daemon(self):
        words = [f"{self.programs}/stated", "--socket", self.path, "--data", self.data, "--config", f"{self.directory}/c.json5"]
        self.daemon = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log(), stderr=self.log())
        for _ in range(400):
            if self.statectl("health").returncode == 0:
                return
            time.sleep(0.05)
        raise SystemExit(f"prometheus-test: the daemon of the case {self.name} does not serve")

    def log(self):
        return open(f"{self.directory}/log", "a")

    def statectl(self, *words):
        return subprocess.run(
            [f"{self.programs}/statectl", "--socket", self.path, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def connect(self):
        found = socket.socket(socket.AF_UNIX)
        found.connect(self.path)
        self.sockets.append(found)
        return found

    def write(self, count, size, prefix):
        """Sets so many keys, whatever the replies are."""
        wire = self.connect()
        value = b"v" * size
        for start in range(0, count, 500):
            numbers = range(start, min(start + 500, count))
            wire.sendall(b"".join(command("SET", f"{prefix}{number}", value) for number in numbers))
            lines = 0
            while lines < len(numbers):
                lines += wire.recv(65536).count(b"\n")

    def repeat(self, body, seconds):
        """Calls the body again and again on a thread, until the case ends."""

        def run():
            while not self.ending.wait(seconds):
                body()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    # What happens to it

    def cause(self):
        pass

    def stop(self):
        """Ends the cause; false if that cannot be."""
        return False

    def end(self):
        self.ending.set()
        if self.thread:
            self.thread.join()
        for wire in self.sockets:
            wire.close()
        for process in (self.server, self.daemon):
            if process and process.poll() is None:
                process.terminate()
                process.wait()


class Down(Case):
    name, alert, what = "down", "StatedDown", "the daemon has ended"

    def cause(self):
        self.daemon.terminate()
        self.daemon.wait()

    def stop(self):
        self.start_daemon()
        return True


class ReadOnly(Case):
    name, alert, what = "readonly", "StatedReadOnly", "its disk is full, and a write was refused"
    also = ("StatedMaintenanceFails",)
    needs = "only root may mount a file system"

    @staticmethod
    def is_possible():
        return os.geteuid() == 0

    def prepare(self):
        os.mkdir(self.data)
        mount = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=0700", "tmpfs", self.data]
        subprocess.run(mount, check=True)

    def cause(self):
        try:
            with open(f"{self.data}/ballast", "wb", buffering=0) as file:
                while file.write(b"\7" * (1 << 20)):
                    pass
        except OSError:
            pass
        self.write(400, 64 << 10, "full/")
        self.repeat(lambda: self.write(1, 64 << 10, "full/more"), 0.5)

    def stop(self):
        os.unlink(f"{self.data}/ballast")
        return True

    def end(self):
        super().end()
        subprocess.run(["umount", self.data])


class Damaged(Case):
    name, alert, what = "damaged", "StatedDamaged", "its database was removed"
    also = ("StatedReadOnly", "StatedMaintenanceFails")

    def cause(self):
        os.unlink(f"{self.data}/stated.db")
        self.repeat(lambda: self.write(1, 10, "damaged"), 0.5)


class Reader(Case):
    name, alert, what = "reader", "StatedMaintenanceFails", "another program reads the database, and the log grows"
    database = None

    def cause(self):
        self.database = sqlite3.connect(f"{self.data}/stated.db", isolation_level=None)
        self.database.execute("BEGIN")
        self.database.execute("SELECT count(*) FROM newest").fetchone()
        self.write(500, 64 << 10, "reader/")

    def stop(self):
        self.database.close()
        self.write(500, 64 << 10, "reader/")
        return True


class SlowDisk(Case):
    name, alert, what = "slow", "StatedSlowDisk", "its disk stands still most of the time"
    needs = "only root may mount and freeze a file system, on a loop device"

    @staticmethod
    def is_possible():
        if os.geteuid() != 0:
            return False
        return subprocess.run(["losetup", "--find"], capture_output=True).returncode == 0

    def prepare(self):
        image = f"{self.directory}/image"
        os.mkdir(self.data)
        subprocess.run(["truncate", "-s", "256M", image], check=True)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, self.data], check=True)

    def freeze(self):
        subprocess.run(["fsfreeze", "-f", self.data], check=True)
        try:
            # Written meanwhile.
            time.sleep(0.9)
        finally:
            subprocess.run(["fsfreeze", "-u", self.data], check=True)

    def cause(self):
        wire = self.connect()

        def write():
            while not self.ending.wait(0.1):
                wire.sendall(command("SET", "slow", "value"))
                wire.recv(100)

        self.writer = threading.Thread(target=write, daemon=True)
        self.writer.start()
        self.repeat(self.freeze, 0.2)

    def stop(self):
        self.ending.set()
        self.thread.join()
        self.writer.join()
        return True

    def end(self):
        super().end()
        subprocess.run(["umount", self.data])


class HandlerBehind(Case):
    name, alert, what = "handler", "StatedHandlerBehind", "100,000 commits that its handler did not get"

    def cause(self):
        self.write(100_100, 1, "h/")

    def stop(self):
        self.connect().sendall(command("STATE.HANDLER", "FORGET", "h"))
        return True


class Blocked(Case):
    name, alert, what = "blocked", "StatedWatchesBlocked", "a client does not read its watch"

    def watch(self):
        wire = self.connect()
        wire.sendall(b"HELLO 3\r\nSTATE.WATCH w/\r\n")
        time.sleep(0.2)
        return wire

    def cause(self):
        self.wire = self.watch()
        self.write(300, 64 << 10, "w/")

    def stop(self):
        self.wire.close()
        return True


class ClientMemory(Blocked):
    name, alert, what = "memory", "StatedClientMemory", "clients that take 14 of 16 MiB"
    also = ("StatedWatchesBlocked",)
    configuration = '{ limits: { memoryBytes: "16MiB", inputBytes: "8MiB", outputBytes: "7MiB", frameTimeout: "600s" } }'

    def cause(self):
        super().cause()
        self.clients = [self.connect() for _ in range(7)]
        for client in self.clients:
            # All but the end.
            client.sendall(command("SET", "memory", b"v" * (1 << 20))[:-1])

    def stop(self):
        for client in self.clients:
            client.close()
        return super().stop()


CASES = [Case, Down, ReadOnly, Damaged, Reader, SlowDisk, HandlerBehind, Blocked, ClientMemory]
