"""Watchers of the daemons of scripts/cluster-check: what they ask for and what comes is recorded, and `watchcrash judge` holds it
against what the daemon has committed: the six guarantees of Tests/StateGuarantees.

A watcher connects, reads, stalls, leaves and goes on from where it was, in session after session. After each round it must have
been sent the last commit that it asked for.
"""

import random
import subprocess
import threading
import time

from cluster_nodes import PREFIX
from cluster_wire import Failure, Push, Session

# The whole prefix, one key by its name, and a glob.
PATTERNS = [[PREFIX], [f"{PREFIX}n0"], [f"{PREFIX}r*", f"{PREFIX}u1"]]
LONGEST = 30


class Recording:
    """One session, as the judge reads it."""

    def __init__(self, watcher, number, epoch, start, option, patterns):
        self.start, self.option, self.epoch = start, option, epoch
        self.lines = [("session", watcher, number, epoch, start_word(start), option or "-", *patterns)]
        self.reply, self.base, self.events, self.last = None, None, 0, None

    def answer(self, reply):
        self.reply = reply["revision"]
        self.lines.append(("reply", self.reply, reply["epoch"].decode()))
        self.base = self.reply if self.start[0] == "now" else None

    def take(self, push, compacted):
        """Records a push; those of the state of the cluster are no events of a watch."""
        kind, revision = push[0].decode(), push[2]
        if kind in ("state.away", "state.current"):
            return
        self.events += 1
        if kind == "state.change" and revision == 0:
            self.last = None
            self.lines.append(("pieces", *(field for piece in push[3] for field in (key(piece), value(piece[1]), piece[2]))))
        elif kind == "state.change":
            fields = [field for change in push[3] for field in (key(change), *(value(part) for part in change[1:]))]
            self.lines.append(("change", revision, *fields))
            if self.option != "latest":
                self.last = self.base = revision
        elif kind == "state.gap":
            self.last = self.base = None
            self.lines.append(("gap", revision, compacted()))
        else:
            self.lines.append((kind.removeprefix("state."), revision))
            self.last = self.base = revision

    def has_reached(self, revision):
        if self.last is not None:
            return self.last >= revision
        if self.events or self.reply is None:
            return False
        # Nothing need come if it began behind it.
        kind, begin, epoch = self.start
        if kind == "from":
            return revision <= begin <= self.reply and epoch in (None, self.epoch)
        return kind == "now" and self.reply >= revision


def key(parts):
    return parts[0].decode()


def value(part):
    return "-" if part is None else "=" + part.decode()


def start_word(start):
    return ":".join(str(part) for part in start if part is not None)


def matches(pattern, name):
    """Whether a watch of the pattern gets the changes of a key; the globs here have one `*`, at the end."""
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name.startswith(pattern) if pattern.endswith("/") else name == pattern


class Watcher:
    """A thread that lives as long as the run."""

    def __init__(self, daemon, node, number, seed):
        self.daemon, self.number, self.patterns = daemon, 10 * node + number, PATTERNS[number % len(PATTERNS)]
        self.random = random.Random(f"{seed}w{self.number}")
        self.epoch, self.position, self.sessions, self.count = None, 0, [], 0
        self.fault = None
        # Guarded by the condition: the last commit that must come, and whether it has.
        self.condition = threading.Condition()
        self.target, self.is_last, self.is_over = None, False, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    # The main thread

    def finish(self, revision, is_last):
        """Asks it to get as far as this revision."""
        with self.condition:
            self.target, self.is_last, self.is_over = revision, is_last, False
            self.condition.notify_all()

    def await_finish(self):
        """The sessions that have ended."""
        with self.condition:
            if not self.condition.wait_for(lambda: self.is_over or self.fault, 3 * LONGEST):
                self.fault = "it neither gets its commits nor gives up"
            if self.fault:
                raise Failure(f"watcher {self.number}: {self.fault}")
            sessions, self.sessions = self.sessions, []
            return sessions

    def go_on(self):
        with self.condition:
            self.target = None
            self.condition.notify_all()

    # Its own thread

    def run(self):
        try:
            while not (self.is_last and self.is_over):
                self.attend()
        except Exception as error:
            with self.condition:
                self.fault = f"{error!r}"
                self.condition.notify_all()

    def attend(self):
        """One session, from the connection to its end."""
        try:
            session = Session(self.daemon.path, 60, version=3)
        except OSError:
            time.sleep(0.1)
            return
        try:
            if self.epoch is None:
                self.epoch = self.daemon.status()["epoch"].decode()
            recording = self.begin(session)
            self.follow(session, recording)
        except OSError:
            pass
        finally:
            session.close()

    def begin(self, session):
        start, option = self.choose()
        recording = Recording(self.number, self.count, self.epoch, start, option, self.patterns)
        kind, revision, epoch = start
        words = {"now": [], "snapshot": ["SNAPSHOT"], "from": ["FROM", str(revision)]}[kind]
        words += (["EPOCH", epoch] if epoch else []) + ([option.upper()] if option else [])
        reply = session.ask("STATE.WATCH", *self.patterns, *words)
        self.count += 1
        self.watch = reply["watch"]
        if reply["epoch"].decode() != self.epoch:
            raise Failure(f"the epoch was {self.epoch} and is {reply['epoch'].decode()}")
        recording.answer(reply)
        self.sessions.append(recording)
        return recording

    def choose(self):
        """Mostly from the last position, sometimes from where nobody can."""
        option = self.random.choice([None, None, None, "latest", "previous"])
        chance = self.random.random()
        if self.position == 0 or chance < 0.1:
            return ("snapshot", None, None), option
        if chance < 0.2 and self.target is None:
            return ("now", None, None), option
        epoch = self.epoch if self.random.random() < 0.7 else None
        if chance < 0.25:
            return ("from", self.position + 1_000_000_000, epoch), option
        if chance < 0.3:
            return ("from", self.position, self.epoch[::-1]), option
        if chance < 0.4:
            return ("from", self.random.randint(max(0, self.position - 500), self.position), epoch), option
        return ("from", self.position, epoch), option

    def follow(self, session, recording):
        leaves = time.monotonic() + self.random.choice([0.3, 2, 8, 30])
        waits = None
        while True:
            with self.condition:
                target = self.target
            if target is None:
                waits = None
                if time.monotonic() > leaves:
                    return
                if self.random.random() < 0.02:
                    # It does not read for a while.
                    time.sleep(self.random.uniform(0.2, 3))
            elif recording.has_reached(target):
                if not self.end_round(session, recording):
                    return
            else:
                waits = waits or time.monotonic() + LONGEST
                if time.monotonic() > waits:
                    recording.lines.append(("silent", target))
                    self.declare_over()
                    return
            self.take(session, recording)

    def take(self, session, recording):
        try:
            push = session.next(0.1)
        except TimeoutError:
            return
        if not isinstance(push, Push) or push[1] != self.watch:
            raise Failure(f"this is no push of the watch: {push}")
        recording.take(push, lambda: self.daemon.status()["compacted"])
        if recording.base is not None:
            self.position = recording.base

    def end_round(self, session, recording):
        """All has come. Some sessions go on in the next round, and are judged once they end.

        Returns: Whether it goes on.
        """
        goes_on = not self.is_last and self.random.random() < 0.4
        if goes_on:
            self.sessions.remove(recording)
        self.declare_over()
        if goes_on:
            with self.condition:
                self.sessions.append(recording)
        return goes_on

    def declare_over(self):
        with self.condition:
            self.is_over = True
            self.condition.notify_all()
            self.condition.wait_for(lambda: self.target is None or self.is_last)


class Judge:
    """`watchcrash judge` for one node."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.sessions, self.events = 0, 0

    def say(self, *fields):
        self.process.stdin.write("\t".join(str(field) for field in fields) + "\n")

    def commit(self, revision, changes):
        self.say("commit", revision, *(field for name, text in changes.items()
                                       for field in (name, "-" if text is None else "=" + text)))

    def check(self, recordings):
        """The violations, one a line."""
        for recording in recordings:
            for line in recording.lines:
                self.say(*line)
        self.say("check")
        self.process.stdin.flush()
        found = []
        for line in self.process.stdout:
            if line.startswith("checked "):
                sessions, events = line.split()[1:]
                self.sessions, self.events = self.sessions + int(sessions), self.events + int(events)
                return found
            found.append(line.strip())
        raise Failure("watchcrash judge has ended")

    def end(self):
        self.process.kill()
        self.process.wait()


class Watching:
    """The watchers of all nodes, and their judges."""

    def __init__(self, cluster, programs, seed):
        self.place = cluster.place
        self.judges = [Judge(f"{programs}/watchcrash") for _ in range(3)]
        self.watchers = [[Watcher(cluster.sockets[n], n, number, seed) for number in range(3)] for n in range(3)]
        # Of each pattern list at each node, the revision of the last commit that it matches.
        self.last = [[0] * len(PATTERNS) for _ in range(3)]

    def take(self, n, commits):
        """What node n has committed since the last time."""
        for revision, changes in commits:
            self.judges[n].commit(revision, changes)
            for index, patterns in enumerate(PATTERNS):
                if any(matches(pattern, name) for pattern in patterns for name in changes):
                    self.last[n][index] = revision

    def judge(self, is_last):
        for n, watchers in enumerate(self.watchers):
            for number, watcher in enumerate(watchers):
                watcher.finish(self.last[n][number % len(PATTERNS)], is_last)
        for n, watchers in enumerate(self.watchers):
            sessions = [session for watcher in watchers for session in watcher.await_finish()]
            violations = self.judges[n].check(sessions)
            if violations:
                self.keep(n, sessions)
                raise Failure(f"node{n}: {violations[0]} ({len(violations)} violations; the sessions are in sessions{n}.txt)")
        if not is_last:
            for watcher in sum(self.watchers, []):
                watcher.go_on()

    def keep(self, n, sessions):
        with open(f"{self.place}/sessions{n}.txt", "w", encoding="utf-8") as file:
            for session in sessions:
                for line in session.lines:
                    file.write("\t".join(str(field) for field in line) + "\n")

    def counts(self):
        return sum(judge.sessions for judge in self.judges), sum(judge.events for judge in self.judges)

    def end(self):
        for judge in self.judges:
            judge.end()
