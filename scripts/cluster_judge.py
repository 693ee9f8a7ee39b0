"""Whether the daemons of scripts/cluster-check have etcd's own history, and what clients were answered agrees with it."""

import re
import time
from collections import Counter

from cluster_clients import REGISTERS
from cluster_nodes import PATIENCE, PREFIX
from cluster_wire import Failure

VERDICT = re.compile(r"the write of .* to key '([^']*)', whose outcome was unknown, was (not )?committed")
COMPARED = "compared with the cluster at its revision"
COUNTERS = [f"{PREFIX}n0", f"{PREFIX}n1"]


class Comparison:
    """The daemons beside etcd, after each round."""

    def __init__(self, cluster, watching):
        self.cluster, self.watching = cluster, watching
        # How much of the history was compared: etcd's revision, and each daemon's; and the size of its log then.
        self.checked, self.positions, self.logs = 0, [0, 0, 0], [0, 0, 0]
        self.answers = Answers()
        # What was compared last, for the verdicts.
        self.unsettled = ([], [], set())
        self.verdicts = Counter()

    def begin(self):
        self.logs = [daemon.size() for daemon in self.cluster.daemons]

    def compare(self, fault, operations):
        """Compares what is new, and returns how many commits that were."""
        compacted = fault.compacted if fault else {0, 1, 2}
        self.asked = time.time()
        through = self.settled_revision()
        # After a compaction etcd does not have it all: then it is that of a daemon that missed nothing.
        wanted = None if compacted else [changes for _, changes in self.cluster.history(self.checked, through)]
        state = self.cluster.state()
        for n in sorted(range(3), key=lambda n: n in compacted):
            self.wait_for(n)
            log = self.read(n, state)
            if wanted is None and n not in compacted:
                wanted = log
            if n not in compacted and log != wanted:
                place = next((i for i, (a, b) in enumerate(zip(log, wanted)) if a != b), min(len(log), len(wanted)))
                raise Failure(
                    f"node{n}: commit {place} of {len(log)} is {log[place:place + 1]}, etcd has {wanted[place:place + 1]}")
        self.checked = through
        if fault is None or fault.is_restored:
            self.answers.begin_anew(state)
        if fault and fault.is_restored:
            self.must_have_noticed()
        commits = list(enumerate(wanted or []))
        self.answers.judge(commits, operations)
        self.unsettled = (commits, operations, fault.killed if fault else set())
        return len(commits)

    def settled_revision(self):
        """Etcd's revision, once what clients have given up is not on its way any more: on a busy machine it may be made late."""
        while True:
            through = self.cluster.revision()
            time.sleep(0.5)
            if not self.cluster.history(through, self.cluster.revision()):
                return through

    def wait_for(self, n):
        deadline, status = time.time() + PATIENCE, {}
        while time.time() < deadline:
            try:
                status = self.cluster.sockets[n].status()
                if status["cluster"] == b"current" and status["cluster_age_ms"] < 2_500 and self.has_proof(n):
                    return
            except (OSError, TypeError):
                pass
            time.sleep(0.1)
        raise Failure(f"node{n} does not become current: {status.get('cluster')!r}")

    def has_proof(self, n):
        """Whether it has a proof that is newer than the question."""
        time.sleep(0.1)
        return self.cluster.sockets[n].status()["cluster_age_ms"] < (time.time() - self.asked) * 1_000

    def read(self, n, state):
        """The new commits of a daemon, whose keys must be those of etcd."""
        found, self.positions[n] = self.changes(n, self.positions[n])
        self.watching.take(n, found)
        here = self.values(n)
        if here != state:
            keys = [key for key in sorted(set(here) | set(state)) if here.get(key) != state.get(key)]
            raise Failure(f"node{n} differs from etcd: {keys[:5]}")
        return [changes for _, changes in found]

    def changes(self, n, since):
        """Its commits of the prefix, with the revision that it is at."""
        commits, position = [], since
        while True:
            kind, position, rows = self.cluster.sockets[n].ask(
                "STATE.CHANGES", "SINCE", str(position), "COUNT", "500", PREFIX)
            if kind == b"gap":
                raise Failure(f"node{n} has lost its history")
            if not rows:
                return commits, position
            for row in rows:
                changes = {change[0].decode(): change[1] and change[1].decode() for change in row[1]}
                commits.append((row[0], changes))

    def values(self, n):
        rows = self.cluster.sockets[n].ask("STATE.LIST", PREFIX)
        return {row[0].decode(): row[1].decode() for row in rows}

    def lines(self, n):
        return self.cluster.daemons[n].lines(self.logs[n])

    def must_have_noticed(self):
        for n in range(3):
            if not any(COMPARED in line for line in self.lines(n)):
                raise Failure(f"node{n} has not noticed that the cluster was restored")

    # Unknown outcomes

    def judge_verdicts(self):
        """What each daemon's log says of the writes whose outcome was unknown is what etcd has.

        A full etcd takes no session of a link, which settles them: so this comes once there is room.
        """
        commits, operations, killed = self.unsettled
        made = {(key, value) for _, changes in commits for key, value in changes.items()}
        for n in range(3):
            unknown = [o for o in operations if o.node == n and o.outcome == "unknown" and o.kind != "read"]
            owed = [o for o in unknown if o.is_doubted]
            found = self.await_verdicts(n, owed, n in killed)
            self.verdicts.update({"committed": sum(c for (_, is_made), c in found.items() if is_made),
                                  "not committed": sum(c for (_, is_made), c in found.items() if not is_made)})
            # Others were answered so, too, but the connection was lost before.
            possible = Counter((o.key, (o.key, o.value) in made) for o in unknown if o.kind == "write")
            wrong = Counter({verdict: c for verdict, c in found.items() if verdict[0] not in COUNTERS}) - possible
            if wrong:
                raise Failure(f"node{n}: etcd does not have it as the log says, {dict(wrong)}: {[str(o) for o in unknown]}")
            counts = Counter(o.key for o in unknown if o.kind == "count")
            for key in COUNTERS:
                if found[key, True] + found[key, False] > counts[key]:
                    raise Failure(f"node{n}: more verdicts about {key} than unknown outcomes")

    def await_verdicts(self, n, owed, is_killed):
        """The verdicts in the log, by key. A daemon that was killed, or had to compare anew, owes none."""
        deadline = time.time() + 15
        while True:
            lines = self.lines(n)
            matches = [match for match in map(VERDICT.search, lines) if match]
            found = Counter((match[1], match[2] is None) for match in matches)
            # A line without a key is of a condition that did not hold, which may be of any of them, or of STATE.SYNC.
            without, named = found.pop(("", False), 0), Counter(match[1] for match in matches)
            missing = Counter(o.key for o in owed) - named
            if missing.total() <= without or is_killed or any(COMPARED in line for line in lines):
                return found
            if time.time() > deadline:
                raise Failure(f"node{n}: no verdict in the log about {[str(o) for o in owed if o.key in missing]}")
            time.sleep(0.2)


class Answers:
    """What clients were answered, beside the history."""

    def __init__(self):
        self.outcomes = {"acknowledged": 0, "refused": 0, "unknown": 0}
        self.counters = {}

    def begin_anew(self, state):
        """The counters are where etcd has them."""
        self.counters = {key: int(state.get(key, 0)) for key in COUNTERS}

    def judge(self, commits, operations):
        """Whether the answers of the round agree with the history: `commits` are revisions with their changes."""
        places, orders = {}, {}
        for revision, changes in commits:
            for key, value in changes.items():
                orders.setdefault(key, []).append((revision, value))
                places.setdefault((key, value), []).append(revision)
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
            judge_register([o for o in operations if o.key == key], orders.get(key, []))

    def judge_counts(self, operations, orders):
        """No two increments got the same number, and each that was acknowledged is one step."""
        for key in COUNTERS:
            values = [int(value) for _, value in orders.get(key, [])]
            first = self.counters.get(key, 0)
            if values != list(range(first + 1, first + 1 + len(values))):
                raise Failure(f"{key} was not counted one by one from {first}: {values[:10]}")
            self.counters[key] = first + len(values)
            mine = [o.value for o in operations if o.key == key and o.kind == "count" and o.outcome == "acknowledged"]
            if len(set(mine)) != len(mine) or not set(mine) <= set(values):
                raise Failure(f"{key}: an increment was answered with a number of another")


def judge_register(operations, order):
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
    answers = sorted((event[1:] for event in events), key=lambda event: event[:2])
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
