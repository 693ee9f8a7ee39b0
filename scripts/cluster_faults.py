"""What scripts/cluster-check breaks. Each fault begins, is mended, and may have something to do after the round was judged."""

import time
import urllib.error

from cluster_clients import Operation
from cluster_net import CUTS
from cluster_nodes import PREFIX, STALE_AFTER, encode, is_full
from cluster_wire import Failure, Refusal

# So long an answer may be awaited before a client learns that the outcome is unknown.
LONG = 12


class Fault:
    """One of them, at node `n`."""

    def __init__(self, cluster, kind):
        self.cluster, self.kind, self.n = cluster, kind, cluster.random.randrange(3)
        # Which nodes have to compare all keys, and which daemons were killed.
        self.compacted, self.killed = set(), set()
        # Whether etcd has lost writes, by an act of the operator.
        self.is_restored = False
        self.words = f"{kind} {self.n}"
        self.mending = []
        # Writes of its own, which are judged with those of the clients.
        self.probes = []

    @property
    def others(self):
        return [(self.n + 1) % 3, (self.n + 2) % 3]

    def begin(self):
        getattr(self, self.kind.replace(" ", "_").replace("-", "_"))()

    def mend(self):
        for step in self.mending:
            step()

    def after(self, comparison):
        """The round has been judged."""

    def seconds(self):
        """How long it lasts."""
        choice, is_long = self.cluster.random, self.kind in LASTING
        if is_long and choice.random() < 0.3:
            return choice.uniform(LONG, LONG + 2)
        return choice.uniform(0.2, 6 if is_long else 4)

    # Killed and stopped

    def kill(self, process):
        process.kill()
        if process in self.cluster.daemons:
            self.killed.add(self.cluster.daemons.index(process))
        self.mending.append(process.start)

    def pause(self, *processes):
        for process in processes:
            process.pause()
            self.mending.append(process.resume)

    def kill_member(self):
        self.kill(self.cluster.members[self.n])

    def pause_member(self):
        self.pause(self.cluster.members[self.n])

    def pause_two_members(self):
        self.pause(*(self.cluster.members[n] for n in self.others))
        self.words = f"pause members {self.others[0]} and {self.others[1]}"

    def kill_daemon(self):
        self.kill(self.cluster.daemons[self.n])

    def pause_daemon(self):
        self.pause(self.cluster.daemons[self.n])

    def kill_link(self):
        self.kill(self.cluster.links[self.n])

    def pause_link(self):
        self.pause(self.cluster.links[self.n])

    def kill_daemon_and_link(self):
        self.kill(self.cluster.daemons[self.n])
        self.kill(self.cluster.links[self.n])

    def kill_meanwhile(self):
        """A daemon or a link besides, which starts again at once."""
        n, name = self.cluster.random.randrange(3), self.cluster.random.choice(["daemon", "link"])
        process = (self.cluster.daemons if name == "daemon" else self.cluster.links)[n]
        if process.start in self.mending or process.resume in self.mending:
            return
        process.kill()
        if name == "daemon":
            self.killed.add(n)
        process.start()
        self.words += f", {name} {n} killed"

    # Cut off. Where there are no namespaces, the processes are stopped.

    def cut(self, stand_in, *ways):
        """One of the ways, at random; `stand_in` are the processes that are stopped if there is no network."""
        network = self.cluster.network
        if network is None:
            self.pause(*stand_in)
            self.words += ": stopped"
            return
        name, cut = self.cluster.random.choice(ways)
        cut(network)
        self.words += f": {name}"
        self.mending.append(network.heal)

    def cut_off_node(self):
        n = self.n

        def unplug(network):
            network.members[n].unplug()
            network.links[n].unplug()

        self.cut(
            [self.cluster.members[n], self.cluster.links[n]], ("unplugged", unplug),
            *((way, lambda network, way=way: network.cut_off_node(n, way)) for way in CUTS))

    def cut_off_link(self):
        self.cut(
            [self.cluster.links[self.n]], ("unplugged", lambda network: network.links[self.n].unplug()),
            *((way, lambda network, way=way: network.cut_off_link(self.n, way)) for way in CUTS))

    def partial_cut(self):
        """Two members do not reach each other, and both the third."""
        a, b = self.others
        self.words = f"partial cut {a}-{b}"
        self.cut([self.cluster.members[a]], *((way, lambda network, way=way: network.part(
            [network.members[a]], [network.members[b]], way)) for way in CUTS))

    def one_way_cut(self):
        """What one sends to the other does not come; what comes back would."""
        a, b = self.others
        self.words = f"one-way cut {a}>{b}"
        self.cut(
            [self.cluster.members[a]],
            ("member to member", lambda network: network.members[a].lose(network.members[b], "silent")),
            ("member to its link", lambda network: network.members[a].lose(network.links[a], "silent")),
            ("link to its member", lambda network: network.links[a].lose(network.members[a], "silent")))

    # Compaction

    def compaction(self):
        """A link has not seen what is compacted."""
        self.kill(self.cluster.links[self.n])
        time.sleep(1)
        self.cluster.compact(self.cluster.revision() - 100)
        self.compacted = {self.n}


class FullQuota(Fault):
    """Etcd is full: nobody can set a key, and everybody reads. The round is judged while it is full."""

    def __init__(self, cluster, kind):
        super().__init__(cluster, kind)
        self.words = kind

    def begin(self):
        deadline, number = time.time() + 60, 0
        while time.time() < deadline:
            try:
                self.cluster.call("kv/put", {"key": encode(f"filler/{number}"), "value": encode("x" * 1_000_000)}, timeout=20)
                number += 1
            except urllib.error.HTTPError as error:
                if is_full(error):
                    return
                raise
            except OSError:
                time.sleep(0.1)
        raise Failure("etcd does not become full")

    def seconds(self):
        return 1

    def mend(self):
        """Longer than a copy counts as current without a proof."""
        end = time.time() + STALE_AFTER + 2
        while time.time() < end:
            time.sleep(0.3)
        for n, daemon in enumerate(self.cluster.sockets):
            state = daemon.status()["cluster"]
            if state != b"current":
                raise Failure(f"node{n} is {state!r} though etcd is only full")
            daemon.ask("GET", f"{PREFIX}r0")
            self.probe(n, "NOSPACE")

    def probe(self, n, wanted):
        """A write; nil as `wanted` if it must succeed."""
        operation = Operation("write", f"{PREFIX}q{n}", f"probe-{time.time()}", n)
        self.probes.append(operation)
        try:
            self.cluster.sockets[n].ask("SET", operation.key, operation.value)
            operation.end("acknowledged")
            answer = None
        except Refusal as refusal:
            operation.refuse(refusal)
            answer = str(refusal)
        if (answer is None) != (wanted is None) or wanted and not answer.startswith(wanted):
            raise Failure(f"{operation}, answered with {answer!r}, wanted {wanted!r}")

    def after(self, comparison):
        """As an operator makes room; then everything goes on."""
        self.cluster.call("kv/deleterange", {"key": encode("filler/"), "range_end": encode("filler0")}, timeout=20)
        # Nobody has changed a key of the prefix since the comparison.
        comparison.checked = self.cluster.revision()
        self.cluster.give_back(comparison.checked)
        self.cluster.etcdctl("alarm", "disarm")
        self.cluster.last_change()
        for n in range(3):
            self.probe_again(n)

    def probe_again(self, n):
        deadline = time.time() + 10
        while True:
            try:
                self.probe(n, None)
                return
            except Failure:
                if time.time() > deadline:
                    raise
                time.sleep(0.2)


class Restore(Fault):
    """A snapshot is made while etcd is written to; later all members begin anew with it, and another history follows.

    What was written between is lost, by the act of the operator: no client of a daemon writes then.
    """

    def __init__(self, cluster, kind):
        super().__init__(cluster, kind)
        self.words, self.compacted, self.is_restored = kind, {0, 1, 2}, True

    def save(self):
        self.path = f"{self.cluster.place}/snapshot"
        self.cluster.etcdctl("snapshot", "save", self.path, member=self.n)

    def begin(self):
        """The daemons have what will be lost; at one of them the link is away sometimes."""
        for n in range(3):
            self.wait_for(n, self.cluster.revision())
        if self.cluster.random.random() < 0.5:
            self.words += f", link {self.n} away"
            self.kill(self.cluster.links[self.n])
        self.cluster.restore(self.path)
        count = self.cluster.random.choice([0, 5, 300])
        self.words += f", then {count} others"
        for number in range(count):
            self.cluster.insist("kv/put", {"key": encode(f"{PREFIX}k{number % 40:02}"), "value": encode(f"other-{number}")})

    def wait_for(self, n, revision):
        deadline = time.time() + 30
        while self.cluster.sockets[n].status()["cluster_revision"] < revision - 5:
            if time.time() > deadline:
                raise Failure(f"node{n} does not follow")
            time.sleep(0.1)


KINDS = [
    "kill member", "pause member", "pause two members", "kill daemon", "pause daemon", "kill link", "pause link",
    "kill daemon and link", "cut off node", "cut off link", "partial cut", "one-way cut", "compaction", "full quota", "restore",
]
# Those that may last until the outcome of a write is unknown.
LASTING = ["pause two members", "pause link", "cut off node", "cut off link", "partial cut", "one-way cut"]


def make(cluster, kind):
    return {"full quota": FullQuota, "restore": Restore}.get(kind, Fault)(cluster, kind)
