"""Whether keys of one machine notice that the cluster is away: `scripts/cluster-check --local`.

Eight connections of statebench set and get keys of one daemon that are not below app/, by turns while the cluster is current and
while the node is cut off. Two clients of the same daemon write keys of the cluster meanwhile.
"""

import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from cluster_net import Network
from cluster_nodes import PREFIX, Cluster, Process
from cluster_wire import Refusal, Session

CONNECTIONS = 8
SECONDS = 10
TURNS = 3


class Other(threading.Thread):
    """A client that writes a key of the cluster, some hundred times a second if it may."""

    def __init__(self, path, number):
        super().__init__(daemon=True)
        self.path, self.number, self.stop = path, number, threading.Event()
        self.counts = {"written": 0, "refused": 0}

    def run(self):
        session, count = Session(self.path), 0
        while not self.stop.wait(0.005):
            count += 1
            try:
                session.ask("SET", f"{PREFIX}other{self.number}", str(count))
                self.counts["written"] += 1
            except Refusal:
                self.counts["refused"] += 1


def measure(programs, path, requests):
    output = subprocess.run(
        [f"{programs}/statebench", "mixed", "--socket", path, "--clients", str(CONNECTIONS), "--writes", "50",
         "--keys", "1000", "--requests", str(requests)], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in output.splitlines()}


def wait_for(daemon, wanted):
    deadline = time.time() + 60
    while not daemon.status()["cluster"].startswith(wanted):
        if time.time() > deadline:
            raise OSError(f"the daemon is not {wanted.decode()}")
        time.sleep(0.1)


def turn(programs, cluster, requests, cut):
    """One measurement, after the daemon has noticed in which state the cluster is."""
    network, link, member = cluster.network, cluster.links[0], cluster.members[0]
    if cut:
        for stop in [network.links[0].unplug, network.members[0].unplug] if network else [link.pause, member.pause]:
            stop()
    wait_for(cluster.sockets[0], b"away" if cut else b"current")
    others = [Other(cluster.sockets[0].path, number) for number in range(2)]
    for other in others:
        other.start()
    found = measure(programs, cluster.sockets[0].path, requests)
    for other in others:
        other.stop.set()
        other.join()
    for name in ["written", "refused"]:
        found[name] = sum(other.counts[name] for other in others)
    if cut:
        for go_on in [network.heal] if network else [link.resume, member.resume]:
            go_on()
    return found


def show(name, found):
    print(f"{name:8} GET p50 {found['read_p50_us']:7.1f} p99 {found['read_p99_us']:7.1f} µs, "
          f"SET p50 {found['write_p50_us']:7.1f} p99 {found['write_p99_us']:7.1f} µs, {found['per_second']:7.0f} a second; "
          f"app/: {found['written']} written, {found['refused']} refused", flush=True)


def run(programs, seed):
    place = tempfile.mkdtemp(prefix="stated-cluster.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    network = Network.open()
    found = {"current": [], "cut off": []}
    try:
        cluster = Cluster(programs, place, seed, network)
        cluster.last_change()
        wait_for(cluster.sockets[0], b"current")
        # As many requests as took ten seconds the last time.
        first = measure(programs, cluster.sockets[0].path, 20_000)["per_second"]
        rates = dict.fromkeys(found, first)
        for _ in range(TURNS):
            for name in found:
                found[name].append(turn(programs, cluster, int(rates[name] * SECONDS), name == "cut off"))
                rates[name] = found[name][-1]["per_second"]
                show(name, found[name][-1])
    finally:
        Process.end_all()
        if network:
            network.close()
        shutil.rmtree(place, ignore_errors=True)
    for kind, verb in [("read", "GET"), ("write", "SET")]:
        current, cut = (statistics.median(turn[f"{kind}_p99_us"] for turn in turns) for turns in found.values())
        print(f"{verb}: median p99 {current:.1f} µs while current, {cut:.1f} µs while cut off: ratio {cut / current:.2f}")


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2])
