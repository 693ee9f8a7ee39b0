"""Who writes and reads in scripts/cluster-check: writers of etcd, and clients of the daemons with what they were answered."""

import random
import time

from cluster_nodes import PREFIX, encode
from cluster_wire import Failure, Refusal, Session

REGISTERS = 4
KEYS = 40


class Operation:
    """A write or a read of a client: when it was asked, and when and how it was answered."""

    def __init__(self, kind, key, value, node):
        self.kind, self.key, self.value, self.node = kind, key, value, node
        self.asked, self.answered, self.outcome = time.monotonic(), None, "unknown"
        # Whether the daemon has answered that the outcome is unknown, and owes a verdict.
        self.is_doubted, self.words = False, ""

    def end(self, outcome):
        self.answered, self.outcome = time.monotonic(), outcome

    def refuse(self, refusal):
        self.words, self.is_doubted = f" ({refusal})", "OUTCOMEUNKNOWN" in str(refusal)
        self.end("unknown" if self.is_doubted else "refused")

    def __str__(self):
        return f"{self.kind} {self.key} = {self.value} at node{self.node}: {self.outcome}{self.words}"


def write_to_etcd(cluster, writer, stop):
    """Writes until `stop` is set; what becomes of an unanswered write is etcd's to say."""
    choice = random.Random(f"{cluster.random.random()}{writer}")
    while not stop.is_set():
        try:
            cluster.call("kv/txn", {"success": transaction(writer, choice)}, member=choice.randrange(3))
        except (OSError, ValueError):
            time.sleep(0.05)


def transaction(writer, choice):
    if choice.random() < 0.02:
        return [{"request_delete_range": {"key": encode(PREFIX + "k"), "range_end": encode(PREFIX + "l")}}]
    operations = []
    for key in choice.sample(range(KEYS), choice.randint(1, 5)):
        name = encode(f"{PREFIX}k{key:02}")
        if choice.random() < 0.25:
            operations.append({"request_delete_range": {"key": name}})
        else:
            value = f"{writer}-{choice.getrandbits(40):x}" * choice.choice([1, 1, 1, 50])
            operations.append({"request_put": {"key": name, "value": encode(value)}})
    return operations


class Client:
    """Writes through one daemon after the other, and reads behind STATE.SYNC."""

    def __init__(self, cluster, number):
        self.cluster, self.number, self.count = cluster, number, 0
        self.operations = []
        self.lost = None

    def run(self, stop):
        try:
            self.work(stop)
        except Exception as error:
            self.lost = f"client {self.number}: {error!r}"

    def work(self, stop):
        choice = random.Random(f"{self.cluster.random.random()}c{self.number}")
        session, node = None, 0
        while not stop.is_set():
            try:
                if session is None:
                    node = choice.randrange(3)
                    session = Session(self.cluster.sockets[node].path)
                self.step(session, node, choice)
                if choice.random() < 0.05:
                    session.close()
                    session = None
            except OSError:
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
            self.write_two(session, node, value, f"{PREFIX}n{choice.randrange(2)}")
        elif what < 0.55:
            key = f"{PREFIX}n{choice.randrange(2)}"
            operation = Operation("count", key, None, node)
            operation.value = self.take(operation, session, "INCR", key)
        elif what < 0.7:
            self.write_if_unchanged(session, node, key, value)
        elif what < 0.9:
            self.read(session, node, key)
        else:
            self.watch(session, key)

    def take(self, operation, session, *words):
        self.operations.append(operation)
        try:
            answer = session.ask(*words)
            operation.end("acknowledged")
            return answer
        except Refusal as refusal:
            operation.refuse(refusal)
            if str(refusal).startswith(("AWAY", "NOSPACE")):
                time.sleep(0.05)
        return None

    def write_two(self, session, node, value, counter):
        """Two keys at once, by EXEC."""
        operation = Operation("write", f"{PREFIX}u{self.number}", value, node)
        self.operations.append(operation)
        try:
            session.ask("MULTI")
            session.ask("SET", operation.key, value)
            session.ask("INCR", counter)
            replies = session.ask("EXEC")
        except Refusal as refusal:
            operation.refuse(refusal)
            session.ask("RESET")
            return
        if any(isinstance(reply, Refusal) for reply in replies):
            raise Failure(f"{operation}: EXEC replied {replies}")
        operation.end("acknowledged")

    def write_if_unchanged(self, session, node, key, value):
        """Only if nobody has changed it: a conflict is an answer, too."""
        entry = session.ask("STATE.GET", key)
        revision = 0 if entry is None else entry[entry.index(b"revision") + 1]
        self.take(Operation("write", key, value, node), session, "STATE.SET", key, value, "IFREV", str(revision))

    def read(self, session, node, key):
        operation = Operation("read", key, None, node)
        try:
            session.ask("STATE.SYNC")
            found = session.ask("GET", key)
            operation.value = None if found is None else found.decode()
            operation.end("acknowledged")
            self.operations.append(operation)
        except Refusal:
            time.sleep(0.05)

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
