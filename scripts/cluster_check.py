"""Three members of etcd, three daemons and their links, under faults. Used by scripts/cluster-check.

Each round, four writers change keys below app/ by transactions of etcd, and eight clients write through the daemons, while
something is killed, stopped or cut off. Then all is healed, and once each daemon says that its copy is current, its log of
the prefix must be etcd's own history: each revision of etcd one commit, in the same order, with the same changes. After a
compaction that a link slept through, the state must be the same, and the log goes on from there.

What clients were told must be so: each acknowledged write is in etcd once, each refused one is not, and of those whose
outcome is unknown the log says what etcd has. Writes and reads behind STATE.SYNC are linearizable: the order of etcd is the
order that they must have. Reads of one connection never go back.
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
WRITERS = 4
CLIENTS = 8
REGISTERS = 4
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


class Refusal(Exception):
    """An error of the daemon."""


class Session:
    """One connection, and what was answered to it."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(25)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def ask(self, *words):
        encoded = [word.encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in encoded))
        line = self.file.peek(1)
        if not line:
            raise OSError("the daemon has closed the connection")
        if line[:1] == b"-":
            raise Refusal(self.file.readline()[1:-2].decode())
        return read(self.file)


class Operation:
    """A write or a read of a client: when it was asked, and when and how it was answered."""

    def __init__(self, kind, key, value, node):
        self.kind, self.key, self.value, self.node = kind, key, value, node
        self.asked, self.answered, self.outcome = time.monotonic(), None, "unknown"

    def end(self, outcome):
        self.answered, self.outcome = time.monotonic(), outcome

    def __str__(self):
        return f"{self.kind} {self.key} = {self.value} at node{self.node}: {self.outcome}"


class Client:
    """Writes through one daemon after the other, and reads behind STATE.SYNC."""

    def __init__(self, cluster, number):
        self.cluster, self.number, self.count = cluster, number, 0
        self.operations = []
        self.lost = None

    def run(self, stop):
        choice = random.Random(f"{self.cluster.random.random()}c{self.number}")
        self.operations, session, node = [], None, 0
        while not stop.is_set():
            try:
                if session is None:
                    node = choice.randrange(3)
                    session = Session(self.cluster.sockets[node].path)
                self.step(session, node, choice)
                if choice.random() < 0.05:
                    session.close()
                    session = None
            except (OSError, Failure):
                if session is not None:
                    session.close()
                session = None
                time.sleep(0.05)
        if session is not None:
            session.close()

    def step(self, session, node, choice):
        key = f"{PREFIX}r{choice.randrange(REGISTERS)}"
        what = choice.random()
        self.count += 1
        value = f"c{self.number}-{self.count}"
        if what < 0.3:
            self.take(Operation("write", key, value, node), session, "SET", key, value)
        elif what < 0.4:
            # Two keys at once, by EXEC.
            name = f"{PREFIX}u{self.number}"
            operation = Operation("write", name, value, node)
            self.operations.append(operation)
            try:
                session.ask("MULTI")
                session.ask("SET", name, value)
                session.ask("INCR", f"{PREFIX}n{choice.randrange(2)}")
                session.ask("EXEC")
                operation.end("acknowledged")
            except Refusal as refusal:
                operation.end("unknown" if "OUTCOMEUNKNOWN" in str(refusal) else "refused")
        elif what < 0.55:
            key = f"{PREFIX}n{choice.randrange(2)}"
            operation = Operation("count", key, None, node)
            operation.value = self.take(operation, session, "INCR", key)
        elif what < 0.7:
            # Only if nobody has changed it: a conflict is an answer, too.
            entry = session.ask("STATE.GET", key)
            revision = 0 if entry is None else entry[entry.index(b"revision") + 1]
            operation = Operation("write", key, value, node)
            self.take(operation, session, "STATE.SET", key, value, "IFREV", str(revision))
        elif what < 0.9:
            operation = Operation("read", key, None, node)
            try:
                session.ask("STATE.SYNC")
                found = session.ask("GET", key)
                operation.value = None if found is None else found.decode()
                operation.end("acknowledged")
                self.operations.append(operation)
            except Refusal:
                time.sleep(0.05)
        else:
            self.watch(session, key)

    def take(self, operation, session, *words):
        self.operations.append(operation)
        try:
            answer = session.ask(*words)
            operation.end("acknowledged")
            return answer
        except Refusal as refusal:
            operation.end("unknown" if str(refusal).startswith("OUTCOMEUNKNOWN") else "refused")
            if str(refusal).startswith("AWAY"):
                time.sleep(0.05)
        return None

    def watch(self, session, key):
        """Reads some keys as they are here: none of them goes back on one connection."""
        last = {}
        for _ in range(20):
            entry = session.ask("STATE.GET", key)
            if entry is not None:
                revision = entry[entry.index(b"revision") + 1]
                if revision < last.get(key, 0):
                    self.lost = f"{key} went back from revision {last[key]} to {revision}"
                last[key] = revision


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
        self.clients = [Client(self, n) for n in range(CLIENTS)]
        # The place in etcd's order of each value of a register: its revision, and that of the next one.
        self.outcomes = {"acknowledged": 0, "refused": 0, "unknown": 0}
        self.counters = {}

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
        self.judge(list(enumerate(wanted or [])))
        return len(wanted or [])

    # What clients were told

    def judge(self, commits):
        """Whether the answers of the round agree with the history: `commits` are revisions with their changes."""
        places, orders = {}, {}
        for revision, changes in commits:
            for key, value in changes.items():
                orders.setdefault(key, []).append((revision, value))
                places.setdefault((key, value), []).append(revision)
        operations = [operation for client in self.clients for operation in client.operations]
        for client in self.clients:
            if client.lost:
                raise Failure(client.lost)
        for operation in operations:
            if operation.outcome != "unknown" or operation.kind == "write":
                self.outcomes[operation.outcome] += 1
            if operation.kind != "write":
                continue
            found = places.get((operation.key, operation.value), [])
            wanted = {"acknowledged": [1], "refused": [0], "unknown": [0, 1]}[operation.outcome]
            if len(found) not in wanted:
                raise Failure(f"{operation}, and etcd has it {len(found)} times")
        self.judge_counts(operations, orders)
        for number in range(REGISTERS):
            key = f"{PREFIX}r{number}"
            self.judge_register(key, [o for o in operations if o.key == key], orders.get(key, []))

    def judge_counts(self, operations, orders):
        """No two increments got the same number, and each that was acknowledged is one step."""
        for key in [f"{PREFIX}n0", f"{PREFIX}n1"]:
            values = [int(value) for _, value in orders.get(key, [])]
            first = self.counters.get(key, 0)
            if values != list(range(first + 1, first + 1 + len(values))):
                raise Failure(f"{key} was not counted one by one from {first}: {values[:10]}")
            self.counters[key] = first + len(values)
            mine = [o.value for o in operations if o.key == key and o.kind == "count" and o.outcome == "acknowledged"]
            if len(set(mine)) != len(mine) or not set(mine) <= set(values):
                raise Failure(f"{key}: an increment was answered with a number of another")

    def judge_register(self, key, operations, order):
        """Whether each operation fits between its question and its answer, in the order that etcd has.

        The states of the register are numbered in that order; state 0 is what was before the round.
        """
        number = {value: index + 1 for index, (_, value) in enumerate(order)}
        events = []
        for operation in operations:
            if operation.outcome != "acknowledged":
                continue
            state = number.get(operation.value, 0)
            events.append((operation.asked, operation.answered, state, operation))
        # Nothing that was asked after an answer may be in an earlier state.
        answers = sorted((answered, state, operation) for _, answered, state, operation in events if answered)
        newest, place = (0, None), 0
        for asked, _, state, operation in sorted(events, key=lambda event: event[0]):
            while place < len(answers) and answers[place][0] < asked:
                if answers[place][1] > newest[0]:
                    newest = (answers[place][1], answers[place][2])
                place += 1
            least = newest[0] + (1 if operation.kind == "write" else 0)
            if state < least:
                raise Failure(f"not linearizable: {operation} is state {state} of the key, after {newest[1]} ({newest[0]})")
        # Nor may an unanswered write be read before it was asked.
        asked = {o.value: o.asked for o in operations if o.kind == "write"}
        for operation in operations:
            if operation.kind == "read" and operation.outcome == "acknowledged":
                if asked.get(operation.value, 0) > operation.answered:
                    raise Failure(f"{operation}: it was written later")

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
            writers += [threading.Thread(target=client.run, args=(stop,)) for client in cluster.clients]
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
        outcomes = ", ".join(f"{count} {name}" for name, count in cluster.outcomes.items())
        print(f"{rounds} rounds, {total} commits: nothing missing, repeated or out of order; operations: {outcomes}")
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
