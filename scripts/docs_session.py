"""A console session of a page: its commands in one bash, and what they print. Used by scripts/check-docs."""

import fcntl
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import threading
import time
import tty

import docs_machine
from docs_pages import ROOT

# See need_etcd in scripts/common.bash.
UNPACKED = os.path.join(ROOT, ".build/etcd/usr/bin")
FINISH_SECONDS = 60
OUTPUT_SECONDS = 10
FAILURE_COUNT = 5
# What a machine has in its PATH. The python3 of a user's own place does not exist in it.
MACHINE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
MACHINE += [shutil.which("python3", path=docs_machine.PATH), os.path.join(ROOT, "scripts/docs_machine.py")]

# Runs each command that comes on descriptor 9, and answers on 8 with its exit code. What bash itself reports, such as the end of a
# job, goes to /dev/null.
DRIVER = """
while IFS= read -r -d '' -u 9 next_command; do
    eval "$next_command" 2>&1 8>&- 9<&-
    printf '%s\\0' "$?" >&8
done
"""


class Place:
    """A directory outside of the repository, with the programs and an ordinary user to run them as."""

    def __init__(self, programs):
        self.path = tempfile.mkdtemp(prefix="stated-docs.")
        os.chmod(self.path, 0o755)
        self.user = self._ordinary_user()
        self.programs = os.path.join(self.path, "bin")
        os.mkdir(self.programs)
        for name in ("stated", "statectl", "stated-etcd"):
            source = os.path.join(programs, name)
            if not os.access(source, os.X_OK):
                raise SystemExit(f"check-docs: {source} is missing; build it, or name its directory with --programs")
            shutil.copy(source, self.programs)
        # Where scripts/test has unpacked them, no other user may be able to go.
        for name in ("etcd", "etcdctl"):
            source = shutil.which(name, path=f"{os.environ['PATH']}:{UNPACKED}")
            if not source:
                raise SystemExit(f"check-docs: {name} is not in PATH; scripts/test unpacks it")
            shutil.copy(source, self.programs)

    @staticmethod
    def _ordinary_user():
        if os.geteuid() != 0:
            return pwd.getpwuid(os.geteuid())
        for name in ("stated-test-a", "nobody"):
            try:
                return pwd.getpwnam(name)
            except KeyError:
                pass
        raise SystemExit("check-docs: neither the user stated-test-a nor nobody exists")

    def credentials(self):
        """What subprocess needs to run something as the ordinary user."""
        if os.geteuid() != 0:
            return {}
        groups = os.getgrouplist(self.user.pw_name, self.user.pw_gid)
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": groups}

    def make(self, *parts, mode=0o755):
        """A new directory of the ordinary user."""
        path = os.path.join(self.path, *parts)
        os.makedirs(path)
        if os.geteuid() == 0:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
        os.chmod(path, mode)
        return path

    def environment(self, name):
        """A fresh home, below a directory of that name; HOME/work is where commands start."""
        self.make(name)
        home = self.make(name, "home")
        self.make(name, "home", "work")
        return {
            "HOME": home,
            "XDG_RUNTIME_DIR": self.make(name, "run", mode=0o700),
            "TMPDIR": self.make(name, "tmp"),
            "PATH": f"{self.programs}:/usr/local/bin:/usr/bin:/bin",
            "USER": self.user.pw_name,
            "LOGNAME": self.user.pw_name,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "dumb",
            "PAGER": "cat",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def as_ada(self, environment):
        """Replaces the paths and the name of the session by those of an ordinary machine: ada, uid 1000."""
        name, uid = self.user.pw_name, self.user.pw_uid
        pairs = [
            (re.escape(environment["XDG_RUNTIME_DIR"]), "/run/user/1000"),
            (re.escape(environment["HOME"]), "/home/ada"),
            (re.escape(environment["TMPDIR"]), "/tmp"),
            (rf"\b{re.escape(name)}\b", "ada"),
            (rf"\buid {uid}\b", "uid 1000"),
            (rf"\(uid {uid}\)", "(uid 1000)"),
        ]

        def replace(text):
            for pattern, replacement in pairs:
                text = re.sub(pattern, replacement, text)
            return text

        return replace

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def processes(session):
    """The processes of a session other than its leader, without zombies."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == session:
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(name))
    return found


def activity(session):
    """What changes while a process of the session works: None while a thread is about to run or waits for a disk."""
    times = []
    for process in processes(session):
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                directory = f"/proc/{process}/task/{thread}"
                with open(f"{directory}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
                if fields[0] not in "STI":
                    return None
                times.append((thread, fields[11], fields[12]))
                if os.path.exists(f"{directory}/schedstat"):
                    with open(f"{directory}/schedstat", encoding="utf-8") as file:
                        times.append((thread, file.read().split()[0]))
        except OSError:
            return None
    return times


class Session:
    """One bash, which runs commands until it is closed."""

    def __init__(self, place, environment, around=()):
        """`around` are words before the command of the shell, for one that is not of the ordinary user."""
        self.output, self.code = b"", None
        self.replace = place.as_ada(environment)
        self.terminal, slave = os.openpty()
        tty.setraw(slave, termios.TCSANOW)
        if os.geteuid() == 0 and not around:
            os.fchown(slave, place.user.pw_uid, place.user.pw_gid)
        command_end, self.commands = os.pipe()
        self.answers, answer_end = os.pipe()
        # Outside of the numbers that the driver uses.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 100) for end in (command_end, answer_end)]
        script = f"exec 9<&{high[0]} 8>&{high[1]} {high[0]}<&- {high[1]}>&-\n{DRIVER}"
        self.bash = subprocess.Popen(
            [*around, "bash", "--norc", "--noprofile", "-c", script, "bash"],
            stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL, pass_fds=high,
            cwd=os.path.join(environment["HOME"], "work"), env=environment, start_new_session=True,
            umask=0o022, **({} if around else place.credentials()),
        )
        for end in (slave, command_end, answer_end, *high):
            os.close(end)

    def read(self, seconds):
        """Takes what was printed, waiting for it that long. Returns what the driver has answered, if it did."""
        answer = b""
        ready = select.select([self.terminal, self.answers], [], [], seconds)[0]
        if self.answers in ready:
            answer = os.read(self.answers, 100)
            ready += select.select([self.terminal], [], [], 0)[0]
        while self.terminal in ready:
            try:
                self.output += os.read(self.terminal, 65536)
            except OSError:
                break
            ready = select.select([self.terminal], [], [], 0)[0]
        if self.answers in ready and not answer:
            raise EOFError
        return answer

    def settle(self):
        """Takes what jobs in the background print until all of them wait for something."""
        deadline, before = time.monotonic() + OUTPUT_SECONDS, None
        while processes(self.bash.pid) and time.monotonic() < deadline:
            size, now = len(self.output), activity(self.bash.pid)
            if now is not None and now == before:
                return
            before = now
            self.read(0.04)
            if len(self.output) != size:
                before = None

    def lines(self):
        """What was printed since the last call of `run`, as a reader of a terminal sees it."""
        text = self.output.decode("utf-8", "replace")
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
        text = re.sub(r"(?m)^bash: line \d+: +\d+ (Killed|Terminated|Hangup)\b.*\n?", "", text)
        text = re.sub(r"(?m)^bash: line \d+: ", "bash: ", text)
        lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in self.replace(text).split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def run(self, command, expected):
        """Runs a command. Returns None if it printed what is expected, else lines that show the difference.

        Raises TimeoutError if it does not end, and EOFError or BrokenPipeError if it ended the shell.
        """
        self.output = b""
        os.write(self.commands, command.encode() + b"\0")
        deadline = time.monotonic() + FINISH_SECONDS
        while not (answer := self.read(max(0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                raise TimeoutError
        self.code = int(answer.rstrip(b"\0"))
        deadline = time.monotonic() + OUTPUT_SECONDS
        while True:
            self.settle()
            actual, has_jobs = self.lines(), bool(processes(self.bash.pid))
            if agree(expected, actual) or has_jobs and agree_in_any_order(expected, actual):
                return None
            if not has_jobs or not may_still_agree(expected, actual) or time.monotonic() > deadline:
                return difference(expected, actual)
            self.read(0.2)

    def close(self):
        """Ends the shell and everything that it has started."""
        os.close(self.commands)
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + 10
            while left := processes(self.bash.pid):
                for process in left:
                    try:
                        os.kill(process, number)
                    except ProcessLookupError:
                        pass
                if time.monotonic() > deadline:
                    break
                self.read_quietly()
        try:
            self.bash.wait(2)
        except subprocess.TimeoutExpired:
            self.bash.kill()
            self.bash.wait()
        os.close(self.terminal)
        os.close(self.answers)

    def read_quietly(self):
        """Lets what ends print its last lines."""
        try:
            self.read(0.05)
        except EOFError:
            time.sleep(0.05)


def line_agrees(expected, actual):
    """`…` stands for any text within a line."""
    pattern = ".*".join(re.escape(part) for part in expected.rstrip().split("…"))
    return re.fullmatch(pattern, actual) is not None


def agree(expected, actual):
    """A line that is only `…` stands for any number of lines."""
    places = {0}
    for line in expected:
        if line.strip() == "…":
            places = set(range(min(places), len(actual) + 1))
        else:
            places = {place + 1 for place in places if place < len(actual) and line_agrees(line, actual[place])}
        if not places:
            return False
    return len(actual) in places


def agree_in_any_order(expected, actual):
    """Jobs in the background print beside the command and beside each other."""
    patterns = [line for line in expected if line.strip() != "…"]
    if len(patterns) > len(actual) or len(patterns) == len(expected) and len(patterns) < len(actual):
        return False
    taken = {}

    def take(index, seen):
        for place, line in enumerate(actual):
            if place not in seen and line_agrees(patterns[index], line):
                seen.add(place)
                if place not in taken or take(taken[place], seen):
                    taken[place] = index
                    return True
        return False

    return all(take(index, set()) for index in range(len(patterns)))


def may_still_agree(expected, actual):
    """Returns False if no further line can make them agree: there is one already that is not expected."""
    if any(line.strip() == "…" for line in expected):
        return True
    return all(any(line_agrees(pattern, line) for pattern in expected) for line in actual)


def difference(expected, actual):
    """The lines of both, by their longest common part: `-` is missing, `+` is unexpected."""
    rows, columns = len(expected), len(actual)
    length = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            if line_agrees(expected[row], actual[column]):
                length[row][column] = 1 + length[row + 1][column + 1]
            else:
                length[row][column] = max(length[row + 1][column], length[row][column + 1])
    row = column = 0
    lines = []
    while row < rows or column < columns:
        if row < rows and column < columns and line_agrees(expected[row], actual[column]):
            lines.append("  " + actual[column])
            row, column = row + 1, column + 1
        elif column == columns or row < rows and length[row + 1][column] >= length[row][column + 1]:
            lines.append("- " + expected[row])
            row += 1
        else:
            lines.append("+ " + actual[column])
            column += 1
    return lines[:30]


def machine_failure(place):
    """Why no disposable machine can be made here; None if it can."""
    if os.geteuid() != 0:
        return "only root can"
    result = subprocess.run(
        [*MACHINE, "probe", place.make("probe")], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )
    return None if result.returncode == 0 else (result.stderr.strip().splitlines() or ["it failed"])[0]


def machine_session(place, name):
    """A session of root in a new machine, which ends with it. Its commands begin in a checkout with the programs."""
    environment = place.environment(f"{name}_machine")
    around = [*MACHINE, "run", place.make(f"{name}_machine", "root"), ROOT, place.programs]
    session = Session(place, environment, around)
    try:
        started = session.run("test -x .build/release/stated", [])
    except (EOFError, BrokenPipeError):
        started = session.lines()
    if started is not None:
        session.close()
        raise ValueError("the machine of the page does not start:\n" + "\n".join(started))
    return session


class Daemon:
    """A daemon of its own for a script."""

    def __init__(self, place, environment):
        self.socket = os.path.join(environment["XDG_RUNTIME_DIR"], "stated.sock")
        self.process = subprocess.Popen(
            [os.path.join(place.programs, "stated"), "--socket", self.socket],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=environment["HOME"], env=environment, start_new_session=True, **place.credentials(),
        )
        self.log = self.process.stdout.readline()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.log += line

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
