"""redis-cli in a terminal of tmux: the hints that it shows for what is typed."""
import os
import subprocess
import time

from suite_serve import Daemon

HINTS = [
    ("GET ", "key"),
    ("SET k ", "value [NX|XX"),
    ("EXPIRE k ", "seconds [NX|XX] [GT|LT]"),
    ("GETEX k ", "[EX seconds|PX milliseconds|EXAT unix-time-seconds"),
    ("MGET a ", "[key ...]"),
    ("PUBLISH ", "channel message"),
    ("CLIENT SETNAME ", "connection-name"),
    ("CONFIG GET ", "parameter [parameter ...]"),
    ("CLIENT KILL ", "ip:port|[ID client-id]"),
    ("SLOWLOG GET ", "[count]"),
]


class Hints:
    name, source = "redis-cli", None

    def run(self, is_short):
        """Whether each hint of HINTS is on the screen within ten seconds."""
        with Daemon() as daemon:
            terminal = Terminal(daemon)
            try:
                results = {typed: terminal.look(typed, hint) for typed, hint in HINTS}
            finally:
                terminal.end()
        failed = [(typed, message) for typed, (outcome, message) in results.items() if outcome == "failed"]
        return results, [f"`{typed}`: {message}" for typed, message in failed]


class Terminal:
    def __init__(self, daemon):
        self.socket = os.path.join(daemon.place.name, "tmux")
        self.tmux("-f", os.devnull, "new-session", "-d", "-x", "150", "-y", "20", "redis-cli", "-s", daemon.path)
        self.wait(">")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *words], check=True, capture_output=True, text=True,
                              env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")).stdout

    def wait(self, text):
        """The screen: when it has the text, or after ten seconds."""
        deadline = time.monotonic() + 10
        while True:
            screen = self.tmux("capture-pane", "-p")
            if text in screen or time.monotonic() > deadline:
                return screen
            time.sleep(0.05)

    def look(self, typed, hint):
        self.tmux("send-keys", "C-u")
        self.tmux("send-keys", "-l", typed)
        screen = self.wait("> " + typed + hint)
        if "> " + typed + hint in screen:
            return ("passed", "")
        return ("failed", f"expected the hint `{hint}`, and the screen has {screen.strip()!r}")

    def end(self):
        self.tmux("kill-server")
