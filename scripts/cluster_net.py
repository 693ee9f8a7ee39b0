"""The network of scripts/cluster-check: a network namespace for each member and each link, and a bridge between them.

A host is cut off from another by sending its packets to a hardware address that nobody has: they are lost without a sign, as
on a broken line. Or by a route `unreachable`: then the sender gets an error at once. Each cut has one direction.
"""

import os
import re
import subprocess

NOBODY = "02:00:00:00:00:01"
CUTS = ["silent", "refused"]


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True).stdout


def free_network():
    """The first two bytes of a network 10.X.Y.0/24 that no address and no route of this machine is in."""
    taken = ip("-4", "addr") + ip("-4", "route")
    first = os.getpid() % 50_000
    for number in range(first, first + 200):
        network = f"10.{number // 250 + 20}.{number % 250}"
        if f"{network}." not in taken and not re.search(r"\b10\.0\.0\.0/8", taken):
            return network
    raise OSError("no network 10.X.Y.0/24 is free")


class Host:
    """A namespace with one address."""

    def __init__(self, network, name, number):
        self.network, self.name = network, f"{network.name}{name}"
        self.address, self.hardware = f"{network.prefix}.{number}", f"02:00:00:00:01:{number:02x}"

    def add(self):
        ip("netns", "add", self.name)
        # The other end is removed with the namespace, and so need not be remembered.
        ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "address", self.hardware, "netns", self.name)
        ip("link", "set", self.name, "master", self.network.bridge, "up")
        ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        for device in ["lo", "eth0"]:
            ip("-n", self.name, "link", "set", device, "up")

    def command(self, *words):
        return ("ip", "netns", "exec", self.name, *words)

    def reach(self, other):
        """The way to the other is as it should be."""
        ip("-n", self.name, "route", "del", "unreachable", f"{other.address}/32", check=False)
        ip("-n", self.name, "neigh", "replace", other.address, "lladdr", other.hardware, "dev", "eth0", "nud", "permanent")

    def lose(self, other, way):
        if way == "refused":
            ip("-n", self.name, "route", "replace", "unreachable", f"{other.address}/32")
        else:
            ip("-n", self.name, "neigh", "replace", other.address, "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")

    def unplug(self):
        """The cable is out, and what runs here reaches itself alone."""
        ip("link", "set", self.name, "down")

    def plug(self):
        ip("link", "set", self.name, "up")


class Network:
    """Use `open`; `close` removes everything."""

    def __init__(self):
        self.name = f"stc{os.getpid()}"
        self.bridge, self.prefix = f"{self.name}b", free_network()
        self.members = [Host(self, f"m{n}", 10 + n) for n in range(3)]
        self.links = [Host(self, f"l{n}", 20 + n) for n in range(3)]

    @staticmethod
    def open():
        """None where namespaces are not permitted."""
        remove_left_over()
        network = None
        try:
            network = Network()
            network.add()
            return network
        except (OSError, subprocess.CalledProcessError) as error:
            if network:
                network.close()
            reason = getattr(error, "stderr", None) or str(error)
            print(f"network namespaces are not permitted here: members are stopped instead ({reason.strip()})", flush=True)
            return None
        except BaseException:
            if network:
                network.close()
            raise

    def hosts(self):
        return self.members + self.links

    def add(self):
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{self.prefix}.1/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        for host in self.hosts():
            host.add()
        self.heal()

    def close(self):
        for host in self.hosts():
            ip("netns", "del", host.name, check=False)
            ip("link", "del", host.name, check=False)
        ip("link", "del", self.bridge, check=False)

    # Faults

    def heal(self):
        for host in self.hosts():
            host.plug()
            for other in self.hosts():
                if other is not host:
                    host.reach(other)

    def part(self, some, others, way):
        """Neither side reaches the other."""
        for a in some:
            for b in others:
                a.lose(b, way)
                b.lose(a, way)

    def cut_off_node(self, n, way):
        """A member and its link reach each other alone. This program still reaches the member."""
        here = [self.members[n], self.links[n]]
        self.part(here, [host for host in self.hosts() if host not in here], way)

    def cut_off_link(self, n, way):
        self.part([self.links[n]], self.members, way)


def remove_left_over():
    """Removes what a killed run has left."""
    for name in set(re.findall(r"\bstc(\d+)[mlb]\d?\b", ip("netns", "list", check=False) + ip("link", check=False))):
        if os.path.exists(f"/proc/{name}"):
            continue
        for end in ["m0", "m1", "m2", "l0", "l1", "l2"]:
            ip("netns", "del", f"stc{name}{end}", check=False)
        for end in ["b", "m0", "m1", "m2", "l0", "l1", "l2"]:
            ip("link", "del", f"stc{name}{end}", check=False)
