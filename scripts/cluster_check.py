"""Three members of etcd, three daemons and their links, under faults. Used by scripts/cluster-check.

Each round, eight writers change keys below app/ by transactions of several keys, while something is killed or stopped.
Then all is healed, and once each daemon says that its copy is current, its log of the prefix must be etcd's own history:
each revision of etcd one commit, in the same order, with the same changes. After a compaction that a link slept through,
the state must be the same, and the log goes on from there.
"""

import base64
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

PREFIX = "app/"
WRITERS = 8
KEYS = 40
PATIENCE = 90


class Failure(Exception):
    pass


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


class Process:
    """A program that can be killed, stopped and started again."""

    def __init__(self, place, name, *command):
        self.log, self.command, self.process = os.path.join(place, name + ".log"), command, None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)


class Daemon:
    """A connection for each command: the daemon may have been killed."""

    def __init__(self, path):
        self.path = path

    def ask(self, *words):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(self.path)
            encoded = [word.encode() for word in words]
            connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in encoded))
            with connection.makefile("rb") as file:
                return read(file)

    def status(self):
        reply = self.ask("STATE.STATUS")
        return {reply[i].decode(): reply[i + 1] for i in range(0, len(reply), 2)}


def read(file):
    line = file.readline()
    kind, rest = line[:1], line[1:-2]
    if kind == b"$":
        return None if rest == b"-1" else file.read(int(rest) + 2)[:-2]
    if kind == b":":
        return int(rest)
    if kind == b"*":
        return None if rest == b"-1" else [read(file) for _ in range(int(rest))]
    if kind == b"+":
        return rest.decode()
    raise Failure(f"the daemon replies {line!r}")


class Cluster:
    def __init__(self, programs, place, seed):
        self.random, self.place = random.Random(seed), place
        numbers = ports(6)
        self.urls = [f"http://127.0.0.1:{number}" for number in numbers[:3]]
        peers = [f"http://127.0.0.1:{number}" for number in numbers[3:]]
        members = ",".join(f"m{n}={peer}" for n, peer in enumerate(peers))
        self.members, self.daemons, self.links = [], [], []
        for n in range(3):
            self.members.append(Process(
                place, f"etcd{n}", "etcd", "--name", f"m{n}", "--data-dir", f"{place}/etcd{n}", "--pre-vote",
                "--log-level", "error", "--listen-client-urls", self.urls[n], "--advertise-client-urls", self.urls[n],
                "--listen-peer-urls", peers[n], "--initial-advertise-peer-urls", peers[n], "--initial-cluster", members,
                "--heartbeat-interval", "100", "--election-timeout", "1000",
            ))
        self.sockets = [Daemon(f"{place}/{n}.sock") for n in range(3)]
        for n in range(3):
            with open(f"{place}/{n}.json5", "w", encoding="utf-8") as file:
                file.write(f'{{ cluster: {{ user: "{os.geteuid()}", node: "node{n}" }},'
                           ' rules: [{ keys: "app/", backing: "cluster" }] }')
            self.daemons.append(Process(
                place, f"stated{n}", f"{programs}/stated", "--config", f"{place}/{n}.json5",
                "--socket", f"{place}/{n}.sock", "--data", f"{place}/data{n}",
            ))
            # Its own member first, so that each is used.
            order = ",".join(self.urls[n:] + self.urls[:n])
            self.links.append(Process(
                place, f"link{n}", f"{programs}/stated-etcd", "--endpoints", order, "--socket", f"{place}/{n}.sock",
            ))
        # How much of the history was compared: etcd's revision, and each daemon's.
        self.checked, self.positions = 0, [0, 0, 0]

    def end(self):
        for process in self.members + self.daemons + self.links:
            process.kill()

    # Etcd, by its gateway

    def call(self, path, body, member=None, timeout=3):
        url = self.urls[self.random.randrange(3) if member is None else member]
        request = urllib.request.Request(f"{url}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            return json.load(reply)

    def write(self, writer, stop):
        """Writes until `stop` is set; what becomes of an unanswered write is etcd's to say."""
        choice = random.Random(f"{self.random.random()}{writer}")
        while not stop.is_set():
            operations = []
            for key in choice.sample(range(KEYS), choice.randint(1, 5)):
                name = encode(f"{PREFIX}k{key:02}")
                if choice.random() < 0.25:
                    operations.append({"request_delete_range": {"key": name}})
                else:
                    value = f"{writer}-{choice.getrandbits(40):x}" * choice.choice([1, 1, 1, 50])
                    operations.append({"request_put": {"key": name, "value": encode(value)}})
            if choice.random() < 0.02:
                operations = [{"request_delete_range": {
                    "key": encode(PREFIX + "k"), "range_end": encode(PREFIX + "l")}}]
            try:
                self.call("kv/txn", {"success": operations}, member=choice.randrange(3))
            except (OSError, ValueError, urllib.error.URLError):
                time.sleep(0.05)

    def revision(self):
        deadline = time.time() + PATIENCE
        while True:
            try:
                reply = self.call("kv/range", {"key": encode("none")})
                return int(reply["header"]["revision"])
            except (OSError, ValueError, KeyError):
                if time.time() > deadline:
                    raise Failure("etcd does not answer") from None
                time.sleep(0.2)

    def history(self, since, through):
        """The changes of each revision after `since`, as etcd has them."""
        command = ["etcdctl", "--endpoints", ",".join(self.urls), "watch", PREFIX, "--prefix", "--rev", str(since + 1),
                   "-w", "json"]
        environment = dict(os.environ, ETCDCTL_API="3")
        # The last change is one of ours, behind everything else.
        last, token = f"{PREFIX}.stated/end", f"{time.time()}"
        self.call("kv/put", {"key": encode(last), "value": encode(token)}, timeout=20)
        commits = {}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as watch:
            for line in watch.stdout:
                for event in json.loads(line).get("Events", []):
                    entry, revision = event["kv"], int(event["kv"]["mod_revision"])
                    key = decode(entry["key"])
                    if key == last and decode(entry.get("value", "")) == token:
                        watch.kill()
                        return sorted(commits.items())
                    if key.startswith(PREFIX + ".stated/") or revision > through:
                        continue
                    value = None if event.get("type") == 1 else decode(entry.get("value", ""))
                    commits.setdefault(revision, {})[key] = value
        raise Failure("the watch of etcd has ended")

    def state(self):
        reply = self.call("kv/range", {"key": encode(PREFIX), "range_end": encode("app0")}, timeout=20)
        entries = {decode(kv["key"]): decode(kv.get("value", "")) for kv in reply.get("kvs", [])}
        return {key: value for key, value in entries.items() if not key.startswith(PREFIX + ".stated/")}

    # The daemons

    def wait_for(self, n, revision):
        deadline, status = time.time() + PATIENCE, {}
        while time.time() < deadline:
            try:
                status = self.sockets[n].status()
                if status["cluster"] == b"current" and status["cluster_age_ms"] < 2_500 and self.reached(n, revision):
                    return
            except (OSError, Failure, IndexError, TypeError):
                pass
            time.sleep(0.1)
        raise Failure(f"node{n} does not become current: {status.get('cluster')!r}")

    def reached(self, n, revision):
        """Whether it has a proof that is newer than the revision: two beats have come since."""
        time.sleep(0.1)
        return self.sockets[n].status()["cluster_age_ms"] < (time.time() - self.asked) * 1_000

    def changes(self, n, since):
        """Its commits of the prefix, with the revision that it is at."""
        commits, position = [], since
        while True:
            kind, position, rows = self.sockets[n].ask(
                "STATE.CHANGES", "SINCE", str(position), "COUNT", "500", PREFIX)
            if kind == b"gap":
                raise Failure(f"node{n} has lost its history")
            if not rows:
                return commits, position
            for row in rows:
                changes = {change[0].decode(): change[1] and change[1].decode() for change in row[1]}
                commits.append((row[0], changes))

    def values(self, n):
        rows = self.sockets[n].ask("STATE.LIST", PREFIX)
        return {row[0].decode(): row[1].decode() for row in rows}

    def compare(self, compacted):
        """Compares what is new; `compacted` are the nodes that had to compare all keys."""
        self.asked = time.time()
        through = self.revision()
        # After a compaction etcd does not have it all: then it is that of a daemon that missed nothing.
        wanted = None if compacted else [changes for _, changes in self.history(self.checked, through)]
        state = self.state()
        for n in sorted(range(3), key=lambda n: n in compacted):
            self.wait_for(n, through)
            found, position = self.changes(n, self.positions[n])
            here = self.values(n)
            if here != state:
                keys = [key for key in sorted(set(here) | set(state)) if here.get(key) != state.get(key)]
                raise Failure(f"node{n} differs from etcd: {keys[:5]}")
            log = [changes for _, changes in found]
            if wanted is None and n not in compacted:
                wanted = log
            if n not in compacted and log != wanted:
                place = next((i for i, (a, b) in enumerate(zip(log, wanted)) if a != b), min(len(log), len(wanted)))
                raise Failure(
                    f"node{n}: commit {place} of {len(log)} is {log[place:place + 1]}, etcd has {wanted[place:place + 1]}")
            self.positions[n] = position
        self.checked = through
        return len(wanted or [])

    # Faults

    def fault(self, kind):
        """Breaks something; returns how to mend it, and which nodes must compare all keys."""
        n = self.random.randrange(3)
        if kind == "compaction":
            self.links[n].kill()
            time.sleep(1)
            self.call("kv/compaction", {"revision": self.revision() - 100, "physical": True}, timeout=20)
            return self.links[n].start, {n}
        if kind == "two members":
            others = [self.members[(n + 1) % 3], self.members[(n + 2) % 3]]
            for member in others:
                member.pause()
            return (lambda: [member.resume() for member in others]), set()
        process = {"member": self.members, "daemon": self.daemons, "link": self.links}[kind.split()[1]][n]
        if kind.startswith("kill"):
            process.kill()
            return process.start, set()
        process.pause()
        return process.resume, set()


KINDS = ["kill member", "pause member", "two members", "kill daemon", "pause daemon", "kill link", "pause link", "compaction"]


def encode(text):
    return base64.b64encode(text.encode()).decode()


def decode(text):
    return base64.b64decode(text).decode()


def run(programs, rounds, seed):
    place = tempfile.mkdtemp(prefix="stated-cluster.")
    cluster = Cluster(programs, place, seed)
    total = 0
    try:
        cluster.revision()
        cluster.compare({0, 1, 2})
        for number in range(rounds):
            kind = KINDS[number % len(KINDS)] if rounds >= len(KINDS) else cluster.random.choice(KINDS)
            stop = threading.Event()
            writers = [threading.Thread(target=cluster.write, args=(n, stop)) for n in range(WRITERS)]
            for writer in writers:
                writer.start()
            time.sleep(cluster.random.uniform(0.2, 1))
            mend, compacted = cluster.fault(kind)
            time.sleep(cluster.random.uniform(0.2, 4))
            mend()
            time.sleep(cluster.random.uniform(0.2, 1))
            stop.set()
            for writer in writers:
                writer.join()
            count = cluster.compare(compacted)
            total += count
            print(f"{number + 1:4} {kind:14} {count:6} commits, the same in three daemons", flush=True)
        print(f"{rounds} rounds, {total} commits: nothing missing, repeated or out of order")
    except Failure as failure:
        print(f"FAILED in round {number + 1 if rounds else 0}: {failure}\nseed {seed}; logs in {place}", file=sys.stderr)
        place = None
        return 1
    finally:
        cluster.end()
        if place:
            shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
