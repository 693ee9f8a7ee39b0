"""The programs of scripts/cluster-check: three members of etcd, three daemons and their links; and how to ask each of them."""

import base64
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from cluster_wire import Daemon, Failure

PREFIX = "app/"
PATIENCE = 90
# In some fifteen rounds the history of a run stays well below it, and a filler fills it in a second or two.
QUOTA = 64 << 20
STALE_AFTER = 3


def ports(count):
    found = []
    for _ in range(count):
        probe = socket.socket()
        probe.bind(("127.0.0.1", 0))
        found.append(probe)
    numbers = [probe.getsockname()[1] for probe in found]
    for probe in found:
        probe.close()
    return numbers


def encode(text):
    return base64.b64encode(text.encode()).decode()


def decode(text):
    return base64.b64decode(text).decode()


class Process:
    """A program that can be killed, stopped and started again."""

    all = []

    def __init__(self, place, name, *command):
        Process.all.append(self)
        self.name, self.log, self.command, self.process = name, os.path.join(place, name + ".log"), command, None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    @staticmethod
    def end_all():
        for process in Process.all:
            if process.process:
                process.kill()

    def kill(self):
        self.resume()
        self.process.kill()
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def size(self):
        return os.path.getsize(self.log)

    def lines(self, since):
        """What it has written to its log after so many bytes."""
        with open(self.log, "rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace").splitlines()


class Cluster:
    """Everything that runs, and etcd's own account of the keys."""

    def __init__(self, programs, place, seed, network=None):
        self.random, self.place, self.network = random.Random(seed), place, network
        self.generation = 0
        self.members, self.daemons, self.links = [], [], []
        self.name_members()
        for n in range(3):
            self.members.append(Process(place, f"etcd{n}", *self.member(n)))
        self.sockets = [Daemon(f"{place}/{n}.sock") for n in range(3)]
        for n in range(3):
            with open(f"{place}/{n}.json5", "w", encoding="utf-8") as file:
                file.write(f'{{ cluster: {{ user: "{os.geteuid()}", node: "node{n}" }},'
                           f' rules: [{{ keys: "{PREFIX}", backing: "cluster", staleAfter: "{STALE_AFTER}s" }}] }}')
            self.daemons.append(Process(
                place, f"stated{n}", f"{programs}/stated", "--config", f"{place}/{n}.json5",
                "--socket", f"{place}/{n}.sock", "--data", f"{place}/data{n}",
            ))
            # Its own member first, so that each is used.
            order = ",".join(self.urls[n:] + self.urls[:n])
            command = [f"{programs}/stated-etcd", "--endpoints", order, "--socket", f"{place}/{n}.sock"]
            self.links.append(Process(place, f"link{n}", *(network.links[n].command(*command) if network else command)))

    def name_members(self):
        if self.network:
            addresses = [host.address for host in self.network.members]
            self.urls = [f"http://{address}:2379" for address in addresses]
            self.peers = [f"http://{address}:2380" for address in addresses]
        else:
            numbers = ports(6)
            self.urls = [f"http://127.0.0.1:{number}" for number in numbers[:3]]
            self.peers = [f"http://127.0.0.1:{number}" for number in numbers[3:]]
        self.initial = ",".join(f"m{n}={peer}" for n, peer in enumerate(self.peers))

    def directory(self, n):
        return f"{self.place}/etcd{n}.{self.generation}"

    def member(self, n):
        command = [
            "etcd", "--name", f"m{n}", "--data-dir", self.directory(n), "--pre-vote", "--log-level", "error",
            "--listen-client-urls", self.urls[n], "--advertise-client-urls", self.urls[n],
            "--listen-peer-urls", self.peers[n], "--initial-advertise-peer-urls", self.peers[n],
            "--initial-cluster", self.initial, "--heartbeat-interval", "100", "--election-timeout", "1000",
            "--quota-backend-bytes", str(QUOTA),
        ]
        return self.network.members[n].command(*command) if self.network else command

    # Etcd, by its gateway

    def call(self, path, body, member=None, timeout=3):
        url = self.urls[self.random.randrange(3) if member is None else member]
        request = urllib.request.Request(f"{url}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            return json.load(reply)

    def insist(self, path, body, what="etcd does not answer"):
        """Asks until a member answers."""
        deadline = time.time() + PATIENCE
        while True:
            try:
                return self.call(path, body)
            except (OSError, ValueError) as error:
                if is_full(error):
                    raise
                if time.time() > deadline:
                    raise Failure(what) from None
                time.sleep(0.2)

    def revision(self):
        return int(self.insist("kv/range", {"key": encode("none")})["header"]["revision"])

    def etcdctl(self, *words, member=None):
        """Runs it on one member, or all of them."""
        endpoints = ",".join(self.urls) if member is None else self.urls[member]
        return subprocess.run(
            ["etcdctl", "--endpoints", endpoints, *words], env=dict(os.environ, ETCDCTL_API="3"),
            check=True, capture_output=True, text=True, timeout=60).stdout

    def last_change(self):
        """Makes a change behind everything else. A full etcd lets keys be deleted: then that of the last time, which is there."""
        last = encode(f"{PREFIX}.stated/end")
        try:
            return int(self.insist("kv/put", {"key": last, "value": encode("1")})["header"]["revision"])
        except urllib.error.HTTPError:
            return int(self.insist("kv/deleterange", {"key": last})["header"]["revision"])

    def history(self, since, through):
        """The changes of each revision after `since`, as etcd has them."""
        last = self.last_change()
        command = ["etcdctl", "--endpoints", ",".join(self.urls), "watch", PREFIX, "--prefix", "--rev", str(since + 1),
                   "-w", "json"]
        commits = {}
        with subprocess.Popen(command, env=dict(os.environ, ETCDCTL_API="3"), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as watch:
            for line in watch.stdout:
                for event in json.loads(line).get("Events", []):
                    entry, revision = event["kv"], int(event["kv"]["mod_revision"])
                    key = decode(entry["key"])
                    if revision >= last:
                        watch.kill()
                        return sorted(commits.items())
                    if key.startswith(PREFIX + ".stated/") or revision > through:
                        continue
                    value = None if event.get("type") == 1 else decode(entry.get("value", ""))
                    commits.setdefault(revision, {})[key] = value
        raise Failure("the watch of etcd has ended")

    def state(self):
        reply = self.insist("kv/range", {"key": encode(PREFIX), "range_end": encode("app0")})
        entries = {decode(kv["key"]): decode(kv.get("value", "")) for kv in reply.get("kvs", [])}
        return {key: value for key, value in entries.items() if not key.startswith(PREFIX + ".stated/")}

    # Space

    def size(self):
        return max(int(self.call("maintenance/status", {}, member=n).get("dbSize", 0)) for n in range(3))

    def compact(self, revision):
        self.call("kv/compaction", {"revision": revision, "physical": True}, timeout=20)

    def give_back(self, revision):
        """Makes the files of all members as small as what is in them."""
        self.compact(revision)
        for n in range(3):
            self.etcdctl("defrag", "--command-timeout=60s", member=n)

    # Another history

    def restore(self, snapshot):
        """Begins anew with what a snapshot has, as an operator does it."""
        for member in self.members:
            member.kill()
        for n in range(3):
            shutil.rmtree(self.directory(n), ignore_errors=True)
        self.generation += 1
        for n, member in enumerate(self.members):
            self.etcdctl(
                "snapshot", "restore", snapshot, "--name", f"m{n}", "--initial-cluster", self.initial,
                "--initial-advertise-peer-urls", self.peers[n], "--data-dir", self.directory(n))
            member.command = self.member(n)
            member.start()


def is_full(error):
    return isinstance(error, urllib.error.HTTPError) and error.code in (429, 500) and b"space exceeded" in reason(error)


def reason(error):
    """The body of an error, which can be read once."""
    if not hasattr(error, "body"):
        error.body = error.read()
    return error.body
