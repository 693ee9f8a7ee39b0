"""Three members of etcd, three daemons and their links, under faults. Used by scripts/cluster-check.

Each round, four writers change keys below app/ by transactions of etcd, and eight clients write through the daemons, while
something is killed, stopped, cut off, compacted, filled or restored. Then all is healed, and once each daemon says that its copy
is current, its log of the prefix must be etcd's own history: each revision of etcd one commit, in the same order, with the same
changes. After a compaction that a link slept through, or a restore, the state must be the same, and the log goes on from there.

What clients were answered must be so: each acknowledged write is in etcd once, each refused one is not, and of those whose
outcome is unknown the log says what etcd has. Writes and reads behind STATE.SYNC are linearizable: the order of etcd is the
order that they must have. Reads of one connection never go back. Three watchers of each daemon keep the six guarantees.
"""

import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

import cluster_faults
from cluster_clients import Client, write_to_etcd
from cluster_judge import Comparison
from cluster_net import Network
from cluster_nodes import QUOTA, Cluster, Process
from cluster_watch import Watching
from cluster_wire import Failure

WRITERS = 4
CLIENTS = 8


class Load:
    """Those who write while something is broken."""

    def __init__(self, cluster, clients):
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=write_to_etcd, args=(cluster, n, self.stop)) for n in range(WRITERS)]
        self.threads += [threading.Thread(target=client.run, args=(self.stop,)) for client in clients]
        for thread in self.threads:
            thread.start()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


class Check:
    """The rounds."""

    def __init__(self, programs, place, seed, network):
        self.cluster = Cluster(programs, place, seed, network)
        self.random = self.cluster.random
        self.watching = Watching(self.cluster, programs, seed)
        self.comparison = Comparison(self.cluster, self.watching)
        self.clients = [Client(self.cluster, n) for n in range(CLIENTS)]
        # Operations that were answered after their round was judged.
        self.late, self.total, self.load = [], 0, None

    def end(self):
        if self.load:
            self.load.stop.set()
        self.watching.end()

    def begin(self):
        self.cluster.last_change()
        self.comparison.compare(None, [])

    def round(self, kind, is_last):
        """One fault, and what became of everything; returns what happened in words."""
        self.comparison.begin()
        fault = cluster_faults.make(self.cluster, kind)
        count = self.restore(fault) if fault.is_restored else self.disturb(fault)
        self.watching.judge(is_last)
        fault.after(self.comparison)
        self.comparison.judge_verdicts()
        self.late = fault.probes
        self.tidy()
        self.total += count
        return f"{fault.words:44} {count:6} commits"

    def disturb(self, fault):
        self.load = Load(self.cluster, self.clients)
        self.rest(0.2, 1)
        fault.begin()
        seconds = fault.seconds()
        if self.random.random() < 1 / 3:
            time.sleep(seconds / 2)
            fault.kill_meanwhile()
            seconds /= 2
        time.sleep(seconds)
        fault.mend()
        self.rest(0.2, 1)
        self.load.end()
        return self.comparison.compare(fault, self.take_operations(fault))

    def restore(self, fault):
        """What came before the snapshot is judged as always; after it only etcd is written to, until all have noticed."""
        calm = cluster_faults.Fault(self.cluster, "calm")
        self.load = Load(self.cluster, self.clients)
        self.rest(0.5, 2)
        self.load.end()
        count = self.comparison.compare(calm, self.take_operations(calm))
        self.comparison.judge_verdicts()
        self.comparison.begin()
        self.load = Load(self.cluster, [])
        self.rest(0.2, 1)
        fault.save()
        self.rest(0.2, 2)
        self.load.end()
        fault.begin()
        fault.mend()
        self.comparison.compare(fault, [])
        return count

    def take_operations(self, fault):
        """What clients have asked since the last time."""
        operations, self.late, fault.probes = self.late + fault.probes, [], []
        for client in self.clients:
            if client.lost:
                raise Failure(client.lost)
            operations += client.operations
            client.operations = []
        return operations

    def tidy(self):
        """Before the files are so large that etcd is full by itself."""
        if self.cluster.size() > QUOTA / 3:
            self.cluster.give_back(self.comparison.checked)

    def rest(self, least, most):
        time.sleep(self.random.uniform(least, most))

    def summary(self, rounds):
        outcomes = ", ".join(f"{count} {name}" for name, count in self.comparison.answers.outcomes.items())
        verdicts = self.comparison.verdicts
        sessions, events = self.watching.counts()
        return (
            f"{rounds} rounds, {self.total} commits: nothing missing, repeated or out of order\n"
            f"operations: {outcomes}; settled in the logs as etcd has them: {verdicts['committed']} committed, "
            f"{verdicts['not committed']} not\n"
            f"watchers: {sessions} sessions with {events} events keep the six guarantees")


def kinds(rounds, choice):
    """Each of them in turn, in an order of its own each time."""
    found = []
    while len(found) < rounds:
        found += choice.sample(cluster_faults.KINDS, len(cluster_faults.KINDS))
    return found[:rounds]


def run(programs, rounds, seed, only=None):
    if only and only not in cluster_faults.KINDS:
        print(f"the kinds are: {', '.join(cluster_faults.KINDS)}", file=sys.stderr)
        return 2
    place, check, number = tempfile.mkdtemp(prefix="stated-cluster."), None, 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    network = Network.open()
    try:
        check = Check(programs, place, seed, network)
        check.begin()
        plan = [only] * rounds if only else kinds(rounds, random.Random(seed))
        for number, kind in enumerate(plan, 1):
            words = check.round(kind, number == len(plan))
            print(f"{number:4} {words}, the same in three daemons", flush=True)
        print(check.summary(rounds))
    except KeyboardInterrupt:
        return 130
    except Exception as failure:
        print(f"FAILED in round {number}: {failure}\nseed {seed}; logs in {place}", file=sys.stderr)
        if not isinstance(failure, Failure):
            traceback.print_exc()
        place = None
        return 1
    finally:
        if check:
            check.end()
        Process.end_all()
        if network:
            network.close()
        if place:
            shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], int(sys.argv[2]), sys.argv[3], *sys.argv[4:]))
