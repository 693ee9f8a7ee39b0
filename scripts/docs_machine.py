"""A machine to install the daemon on, which disappears with its last process. Used by scripts/check-docs.

  docs_machine.py probe DIRECTORY                            exits with 0 if such a machine can be made here
  docs_machine.py run DIRECTORY CHECKOUT PROGRAMS COMMAND…   is its first process; COMMAND runs as root in its checkout
  docs_machine.py systemctl ARGUMENT…                        asks the first process, inside of the machine

The first two run below `unshare --mount --net --pid --fork`. The root of the machine is an overlay of /: what is written
stays in memory. It has the user ada, uid 1000, logged in; /home/ada/stated is a checkout in which `swift build -c release`
has run.

All programs are those of this system, except for three that need systemd as process 1, or a compiler. `systemctl` has
daemon-reload, enable, start and stop, for the machine and for users (--user), and fails for everything else. `enable` is the
real one, and after daemon-reload the real systemd-analyze has nothing to say of the units; the rest is done by the first
process, with the unit files that are installed: it opens sockets, hands them over,
starts a service when a client connects, waits for READY=1, and gives the service its user, its directories, its environment,
its limits and no capabilities. It neither restarts services nor applies what else restricts them. `loginctl enable-linger`
checks the user. `swift` has only `build -c release`.
"""

import contextlib
import fcntl
import glob
import grp
import json
import os
import pwd
import resource
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

CONTROL = "/run/docs-machine.sock"
NOTIFY = "/run/docs-machine.notify"
JOURNAL = "/run/docs-machine.log"
START_SECONDS = 30
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USER, UID = "ada", 1000
CHECKOUT = f"/home/{USER}/stated"
# Where a stated that is installed on this system has its files; the machine begins without it.
INSTALLED = """
    /usr/bin/stated /usr/bin/statectl /usr/local/bin/stated /usr/local/bin/statectl /etc/stated /var/lib/stated
    /usr/lib/systemd/*/stated.* /usr/local/lib/systemd/*/stated.* /etc/systemd/*/stated.* /etc/systemd/*/*.wants/stated.*
    /usr/lib/sysusers.d/stated.conf /usr/lib/tmpfiles.d/stated.conf /etc/sysusers.d/stated.conf /etc/tmpfiles.d/stated.conf
""".split()

SHIMS = {
    "systemctl": 'exec python3 /usr/local/lib/docs_machine.py systemctl "$@"',
    "swift": """
        [ "$*" = "build -c release" ] || { echo "swift $*: not known to this stand-in"; exit 2; }
        [ -e Package.swift ] || { echo "error: Could not find Package.swift in this directory"; exit 1; }
        [ -x .build/release/stated ] && [ -x .build/release/statectl ]
    """,
    "loginctl": """
        [ "$#" = 2 ] && [ "$1" = enable-linger ] || { echo "loginctl $*: not known to this stand-in"; exit 2; }
        [ "$(id -u)" = 0 ] && getent passwd "$2" >/dev/null || { echo "Failed to look up user $2"; exit 1; }
        mkdir -p /var/lib/systemd/linger && touch "/var/lib/systemd/linger/$2"
    """,
}


def as_user(command):
    """A command that runs another one as ada, as after a new login."""
    settings = {
        "HOME": f"/home/{USER}", "USER": USER, "LOGNAME": USER, "XDG_RUNTIME_DIR": f"/run/user/{UID}", "PATH": PATH,
        "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb",
    }
    words = [f"{key}={value}" for key, value in settings.items()]
    login = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "env", "-i", *words]
    return shlex.join([*login, "bash", "--norc", "--noprofile", "-c", command])


# The machine is made.


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def mount_overlay(place, root, name):
    """An overlay of the directory `name` of this system, at the same place below `root`."""
    parts = [os.path.join(place, part, name or "root") for part in ("upper", "work")]
    for part in parts:
        os.makedirs(part)
        os.chmod(part, 0o755)
    options = f"lowerdir=/{name},upperdir={parts[0]},workdir={parts[1]}"
    mount("-t", "overlay", "-o", options, "overlay", os.path.join(root, name))


def mount_root(place):
    """Mounts the root of the machine and returns its path."""
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", place)
    root = os.path.join(place, "machine")
    os.mkdir(root)
    mount_overlay(place, root, "")
    for name in ("etc", "usr", "var", "opt"):
        if os.path.ismount(f"/{name}"):
            mount_overlay(place, root, name)
    for name, mode in (("run", "755"), ("tmp", "1777"), ("home", "755"), ("root", "700")):
        mount("-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", os.path.join(root, name))
    mount("-t", "proc", "proc", os.path.join(root, "proc"))
    mount("--rbind", "/dev", os.path.join(root, "dev"))
    return root


def make_checkout(source, programs, root):
    """Copies what the pages name of the repository, and the programs to where a build puts them."""
    checkout = root + CHECKOUT
    os.makedirs(checkout)
    shutil.copy(os.path.join(source, "Package.swift"), checkout)
    for name in ("config", "scripts"):
        shutil.copytree(os.path.join(source, name), os.path.join(checkout, name))
    shutil.copytree(programs, os.path.join(checkout, ".build", "release"))


def make_shims(root):
    shutil.copy(os.path.abspath(__file__), f"{root}/usr/local/lib/docs_machine.py")
    for name, script in SHIMS.items():
        path = f"{root}/usr/local/bin/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)


def remove_installed(root):
    for path in (each for pattern in INSTALLED for each in glob.glob(root + pattern)):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def make_user():
    """Makes ada, and logs her in. Who has her name or number here goes, and so does the user of the daemon."""
    for account in [each for each in pwd.getpwall() if each.pw_name in (USER, "stated") or each.pw_uid == UID]:
        subprocess.run(["userdel", "--force", account.pw_name], check=True, capture_output=True)
    if any(each.gr_name == "stated" for each in grp.getgrall()):
        subprocess.run(["groupdel", "--force", "stated"], check=True)
    subprocess.run(["useradd", "--uid", str(UID), "--user-group", "--shell", "/bin/bash", USER], check=True)
    subprocess.run(["chown", "-R", f"{USER}:", f"/home/{USER}"], check=True)
    os.makedirs("/run/user")
    make_directory(f"/run/user/{UID}", 0o700, pwd.getpwnam(USER))


def make_directory(path, mode, owner):
    """A directory of that user, if it does not exist. Those above it are made, too."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for path in reversed(missing):
        os.mkdir(path)
        os.chmod(path, mode if path == missing[0] else 0o755)
        os.chown(path, owner.pw_uid, owner.pw_gid)


# Process 1 of the machine: what systemd does for these units.


class Failure(Exception):
    """What `systemctl` prints before it exits with 1."""


class Unit:
    """A unit file: its settings, by section and name; each a list of values, which an empty one clears."""

    def __init__(self, name, path):
        self.name, self.settings, section = name, {}, None
        with open(path, encoding="utf-8") as file:
            lines = file.read().replace("\\\n", " ").splitlines()
        for number, line in enumerate(map(str.strip, lines), 1):
            key, is_setting, value = line.partition("=")
            if not line or line[0] in "#;":
                continue
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
                if section not in ("Unit", "Service", "Socket", "Install"):
                    raise Failure(f"{path}:{number}: {line} is not known to this stand-in")
            elif not is_setting or section is None:
                raise Failure(f"{path}:{number}: not a setting: {line}")
            else:
                values = self.settings.setdefault((section, key.strip()), [])
                if value.strip():
                    values.append(value.strip())
                else:
                    values.clear()

    def all(self, section, key):
        return self.settings.get((section, key), [])

    def one(self, section, key, default=None):
        """The last value; `default` if there is none."""
        return (self.all(section, key) or [default])[-1]

    def units(self, key):
        """The units that one of its settings names."""
        return [name for value in self.all("Unit", key) for name in value.split()]


class Manager:
    """The units of the machine, or those of one user."""

    def __init__(self, uid):
        self.is_system, self.owner = uid is None, pwd.getpwuid(uid or 0)
        self.runtime = "/run" if self.is_system else f"/run/user/{uid}"
        self.units, self.sockets, self.processes, self.ready = {}, {}, {}, set()

    def folders(self):
        kind = "system" if self.is_system else "user"
        folders = [f"/etc/systemd/{kind}", f"/usr/local/lib/systemd/{kind}", f"/usr/lib/systemd/{kind}"]
        return folders if self.is_system else [f"{self.owner.pw_dir}/.config/systemd/user", *folders]

    def reload(self):
        """Reads the unit files again. Only those of this project are of interest."""
        self.units = {}
        for folder in reversed(self.folders()):
            for name in os.listdir(folder) if os.path.isdir(folder) else []:
                if name in ("stated.service", "stated.socket"):
                    self.units[name] = Unit(name, os.path.join(folder, name))

    def unit(self, name):
        if name not in self.units:
            raise Failure(f"Unit {name} not found.")
        return self.units[name]

    def start(self, name):
        """Starts a unit, and before it those that it requires."""
        unit = self.unit(name)
        for required in unit.units("Requires"):
            if required not in self.sockets:
                self.start(required)
        if name.endswith(".socket") and name not in self.sockets:
            self.sockets[name] = self.opened(unit)
        elif name.endswith(".service") and name not in self.processes:
            self.start_service(unit)

    def stop(self, name):
        """Stops a unit, and before it those that require it."""
        self.unit(name)
        for other, unit in self.units.items():
            if name in unit.units("Requires"):
                self.stop(other)
        for opened in self.sockets.pop(name, []):
            opened.close()
        if name in self.processes:
            self.stop_service(name)

    def stop_service(self, name):
        process = self.processes[name]
        os.kill(process, signal.SIGTERM)
        deadline = time.monotonic() + float(self.unit(name).one("Service", "TimeoutStopSec", 90))
        while name in self.processes:
            if time.monotonic() > deadline:
                raise Failure(f"{name} does not end, pid {process}")
            time.sleep(0.01)
            for ended, status in reaped():
                self.ended(ended, status)
                if ended == process and status != 0:
                    raise Failure(f"{name} failed when it was stopped:\n{journal()}")

    def ended(self, process, status):
        """Process 1 has waited for a process, perhaps one of these."""
        for name in [name for name, each in self.processes.items() if each == process]:
            del self.processes[name]
            self.ready.discard(process)
            if status != 0:
                log(f"{name} ended: exit code {os.waitstatus_to_exitcode(status)}")

    def opened(self, unit):
        """The sockets of a socket unit."""
        found = []
        for path in unit.all("Socket", "ListenStream"):
            path = path.replace("%t", self.runtime)
            mode = int(unit.one("Socket", "DirectoryMode", "0755"), 8)
            make_directory(os.path.dirname(path), mode, self.owner)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            found.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            found[-1].bind(path)
            os.chmod(path, int(unit.one("Socket", "SocketMode", "0666"), 8))
            group = unit.one("Socket", "SocketGroup")
            os.chown(path, self.owner.pw_uid, grp.getgrnam(group).gr_gid if group else self.owner.pw_gid)
            found[-1].listen(int(unit.one("Socket", "Backlog", "4096")))
        return found

    def start_service(self, unit):
        """Starts the program of a service, and waits until it is ready."""
        command = shlex.split(unit.one("Service", "ExecStart", ""))
        if not command or not os.access(command[0], os.X_OK):
            raise Failure(f"{unit.name}: {command} cannot be executed")
        account = self.account(unit)
        environment = self.environment(unit, account)
        sockets = [each for opened in self.sockets.values() for each in opened]
        process = os.fork()
        if process == 0:
            with contextlib.suppress(BaseException):
                self.become(unit, account, command, environment, sockets)
            os._exit(127)
        self.processes[unit.name] = process
        self.wait_until_ready(unit, process)

    def account(self, unit):
        if not self.is_system:
            return self.owner
        try:
            return pwd.getpwnam(unit.one("Service", "User", "root"))
        except KeyError:
            raise Failure(f"{unit.name}: the user {unit.one('Service', 'User')} does not exist") from None

    def environment(self, unit, account):
        """What systemd sets for a service. Makes the directories that belong to it."""
        found = {"PATH": PATH, "LANG": "C.UTF-8", "NOTIFY_SOCKET": NOTIFY}
        if account.pw_uid != 0:
            found |= {"HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name, "SHELL": account.pw_shell}
        if not self.is_system:
            found["XDG_RUNTIME_DIR"] = self.runtime
        for kind, base in (("State", "/var/lib"), ("Runtime", "/run"), ("Configuration", "/etc")):
            if name := unit.one("Service", f"{kind}Directory"):
                if not self.is_system:
                    raise Failure(f"{unit.name}: {kind}Directory is not known to this stand-in")
                mode = int(unit.one("Service", f"{kind}DirectoryMode", "0755"), 8)
                make_directory(f"{base}/{name}", mode, account)
                found[f"{kind.upper()}_DIRECTORY"] = f"{base}/{name}"
        for value in unit.all("Service", "Environment"):
            found.update(word.split("=", 1) for word in shlex.split(value))
        return found

    @staticmethod
    def become(unit, account, command, environment, sockets):
        """Makes this process the program of a service."""
        os.setsid()
        with open("/dev/null", "rb") as null, open(JOURNAL, "ab") as journal_file:
            for number, file in ((0, null), (1, journal_file), (2, journal_file)):
                os.dup2(file.fileno(), number)
        high = [fcntl.fcntl(each.fileno(), fcntl.F_DUPFD, 100) for each in sockets]
        for number, fd in enumerate(high, 3):
            os.dup2(fd, number)
        os.closerange(3 + len(sockets), 1000)
        environment |= {"LISTEN_FDS": str(len(sockets)), "LISTEN_PID": str(os.getpid())} if sockets else {}
        os.umask(int(unit.one("Service", "UMask", "0022"), 8))
        if limit := unit.one("Service", "LimitNOFILE"):
            resource.setrlimit(resource.RLIMIT_NOFILE, (int(limit), int(limit)))
        os.chdir("/")
        words = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--init-groups", "--inh-caps=-all"]
        words += ["--bounding-set=-all"] if unit.settings.get(("Service", "CapabilityBoundingSet")) == [] else []
        words += ["--no-new-privs"] if unit.one("Service", "NoNewPrivileges") == "yes" else []
        os.execvpe(words[0], [*words, *command], environment)

    def wait_until_ready(self, unit, process):
        deadline = time.monotonic() + START_SECONDS
        while unit.one("Service", "Type") == "notify" and process not in self.ready:
            for ended, status in reaped():
                self.ended(ended, status)
            if unit.name not in self.processes:
                raise Failure(f"Job for {unit.name} failed:\n{journal()}")
            if time.monotonic() > deadline:
                raise Failure(f"{unit.name} is not ready after {START_SECONDS} s:\n{journal()}")
            if select.select([notify_socket], [], [], 0.02)[0]:
                message, ancillary, _, _ = notify_socket.recvmsg(4096, socket.CMSG_SPACE(12))
                sender = next((struct.unpack("3i", data)[0] for _, _, data in ancillary), None)
                if b"READY=1" in message.split(b"\n"):
                    self.ready.add(sender)

    def activate(self):
        """Starts the services that a client waits for."""
        for name, opened in list(self.sockets.items()):
            service = name.replace(".socket", ".service")
            if service not in self.processes and select.select(opened, [], [], 0)[0]:
                self.start(service)


def log(line):
    with open(JOURNAL, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def journal():
    with open(JOURNAL, encoding="utf-8") as file:
        return "\n".join(file.read().splitlines()[-10:])


# The shell of the page, whose end is the end of the machine; and where services say that they are ready.
driver = None
notify_socket = None


def reaped():
    """The children that have ended."""
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if process == 0:
            return
        if process == driver:
            sys.exit(0)
        yield process, status


def answer(managers, client):
    """Does what one call of `systemctl` asks for."""
    uid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
    verb, is_user, names = json.loads(client.recv(65536))
    if not is_user and uid != 0:
        raise Failure("Access denied")
    manager = managers.setdefault(uid if is_user else None, Manager(uid if is_user else None))
    if verb == "daemon-reload":
        manager.reload()
    for name in names:
        (manager.start if verb == "start" else manager.stop)(name)


def serve():
    """Process 1: answers `systemctl`, and starts services, until the shell has ended."""
    global notify_socket
    notify_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify_socket.bind(NOTIFY)
    notify_socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.bind(CONTROL)
    control.listen()
    for path in (NOTIFY, CONTROL):
        os.chmod(path, 0o666)
    managers, failures = {}, (Failure, OSError, LookupError, ValueError)
    while True:
        for process, status in reaped():
            for manager in managers.values():
                manager.ended(process, status)
        try:
            for manager in managers.values():
                manager.activate()
        except failures as failure:
            log(str(failure))
        if select.select([control], [], [], 0.02)[0]:
            client = control.accept()[0]
            try:
                answer(managers, client)
                client.send(b"done")
            except failures as failure:
                client.send(str(failure).encode())
            client.close()


def verify(kind):
    """Whether the real systemd-analyze has something to say of the units; it prints that."""
    paths = glob.glob(f"/usr/lib/systemd/{kind}/stated.*") + glob.glob(f"/etc/systemd/{kind}/stated.*")
    if not paths or not shutil.which("systemd-analyze"):
        return
    command = ["systemd-analyze", f"--{kind}", "--man=no", "verify", *paths]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0 or result.stdout:
        sys.exit(f"systemd-analyze verify: exit code {result.returncode}\n{result.stdout}")


def systemctl(arguments):
    """The stand-in for `systemctl`, inside of the machine."""
    is_user, now = "--user" in arguments, "--now" in arguments
    verb, *names = [each for each in arguments if each not in ("--user", "--now")] or [""]
    names = [name if "." in name else f"{name}.service" for name in names]
    takes_names = verb in ("enable", "start", "stop")
    known = ["daemon-reload", "enable", "start", "stop"]
    if verb not in known or takes_names != bool(names) or now and verb != "enable" or any(name[0] == "-" for name in names):
        sys.exit(f"systemctl {shlex.join(arguments)}: not known to this stand-in")
    if verb == "enable":
        scope = ["--user"] if is_user else []
        # Not this one, which comes first in PATH.
        real = shutil.which("systemctl", path="/usr/bin:/bin")
        enabled = subprocess.run([real, *scope, "enable", *names], check=False)
        if enabled.returncode != 0 or not now:
            sys.exit(enabled.returncode)
        verb = "start"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(CONTROL)
        connection.send(json.dumps([verb, is_user, names]).encode())
        result = connection.recv(65536)
    if result != b"done":
        sys.exit(result.decode() or "the first process of the machine has ended")
    if verb == "daemon-reload":
        verify("user" if is_user else "system")


def run(place, source, programs, command):
    """The first process: makes the machine, starts the command in it, and serves until that has ended."""
    global driver
    os.setsid()
    os.dup2(1, 2)
    os.environ.clear()
    os.environ.update({"HOME": "/root", "USER": "root", "PATH": PATH, "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"})
    root = mount_root(place)
    remove_installed(root)
    make_checkout(source, programs, root)
    make_shims(root)
    os.chroot(root)
    os.chdir("/")
    make_user()
    log("systemd is a stand-in here")
    os.chdir(CHECKOUT)
    driver = os.fork()
    if driver == 0:
        os.execvp(command[0], command)
    os.chdir("/")
    os.closerange(3, 1000)
    serve()


def main():
    verb, *arguments = sys.argv[1:]
    if verb == "probe":
        mount_root(arguments[0])
    elif verb == "run":
        run(*arguments[:3], arguments[3:])
    elif verb == "systemctl":
        systemctl(arguments)


if __name__ == "__main__":
    main()
