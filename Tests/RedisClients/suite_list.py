"""The suites: where each is from, and how it is run, unmodified."""
import glob
import os
import re
import signal
import subprocess
import tempfile

from suite_fetch import HERE, PLACE, Source, python
from suite_results import Table, read_pytest, read_unittest
from suite_serve import Daemon, Link, Relay, children

DJANGO = Source("django", "5.2.19", "django-5.2.19.tar.gz",
                "ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1")
REDIS = Source("redis", "8.1.0", "redis-8.1.0.tar.gz",
               "6e1a19beef9225c83efd689c7e6b7da2d5215b1f42cd13b7fc3714d0a09c7b25")
LIMITS = Source("limits", "5.8.0", "limits-5.8.0.tar.gz",
                "c9e0d74aed837e8f6f50d1fcebcf5fd8130957287206bc3799adaee5092655da")
LOCK = Source("python-redis-lock", "4.0.1", "python_redis_lock-4.0.1.tar.gz",
              "57995e13dce196301138d710d4f132d667c200cd814718e081bf299d6cf11d70")
RQ = Source("rq", "3.0.0", "rq-3.0.0.tar.gz",
            "b41e39b3c36ec3faf9e2402c638a0b25fe18ebb93a1cb15193bc69694f054618")
HUEY = Source("huey", "3.5.4", "huey-3.5.4.tar.gz",
              "328f5a2dd1406621e5edb17d45655ae232ad9f32c0795ca8dc0bfc121dd7b30c")
# The copy of hiredis in the package of PyPI lacks the headers that its test includes.
HIREDIS = Source("hiredis", "0.14.1", "hiredis_0.14.1.orig.tar.gz",
                 "2663b2aed9fd430507e30fc5e63274ee40cdd1a296026e22eafd7d99b01c8913",
                 "http://deb.debian.org/debian/pool/main/h/hiredis/hiredis_0.14.1.orig.tar.gz")


class Pytest:
    """A suite of pytest: all files of its folders, except those that its table says never run."""

    def __init__(self, name, source, *words, folders=("tests",), ports=(), link=None, one_database=False,
                 environment=None):
        self.name, self.source, self.words, self.folders = name, source, words, folders
        self.ports, self.link, self.one_database, self.environment = ports, link, one_database, environment or {}

    def run(self, is_short):
        """The outcomes of the tests, and the problems of the table."""
        table = Table(self.name)
        files, words, problems = self.choose(table, is_short)
        with (Daemon() as daemon, Relay(daemon.path, self.ports, self.one_database), Link(daemon.path, self.link),
              tempfile.TemporaryDirectory() as place):
            report = os.path.join(place, "report.xml")
            environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=HERE, **self.environment)
            environment["PATH"] = os.path.join(HERE, "suites", "bin") + os.pathsep + environment["PATH"]
            command = [python(), "-m", "pytest", "-v", "--tb=line", "-p", "no:cacheprovider", "--continue-on-collection-errors",
                       "--timeout=60", "--timeout-method=signal", "--durations=40", "--basetemp=" + place + "/p",
                       "--junitxml=" + report, *self.words, *words, *files]
            output = run(command, self.source.tree, environment, log(self.name))
            if not os.path.exists(report):
                return {}, [output[-3000:]]
            results = read_pytest(report)
        return results, problems + table.compare(results, is_short)

    def choose(self, table, is_short):
        """The files that run, the words for tests that do not, and patterns of the table that match nothing."""
        found = {path for folder in self.folders for path in self.files(folder)}
        left, words, problems = set(), [], []
        for kind in ("never", "full"):
            for pattern in table.of(kind):
                if "::" in pattern:
                    words += ["--deselect=" + pattern] if kind == "never" or is_short else []
                    continue
                hits = {path for path in found if path == pattern or path.startswith(pattern.rstrip("*"))
                        and pattern.endswith("*")}
                if not hits:
                    problems.append(f"{table.path}: no file matches {pattern}")
                if kind == "never" or is_short:
                    left |= hits
        return sorted(found - left), words, problems

    def files(self, folder):
        paths = glob.glob(os.path.join(self.source.tree, folder, "**", "test_*.py"), recursive=True)
        return {os.path.relpath(path, self.source.tree) for path in paths}


class DjangoCache:
    """The tests of Django's cache that are about Redis, by Django's own runner."""

    name, source = "django", DJANGO

    def run(self, is_short):
        table = Table(self.name)
        with Daemon() as daemon, Relay(daemon.path, [6379]), tempfile.TemporaryDirectory() as place:
            with open(os.path.join(place, "suite_settings.py"), "w") as opened:
                opened.write(DJANGO_SETTINGS)
            command = [python(), "runtests.py", "cache.tests.RedisCacheTests", "-v", "2", "--parallel", "1",
                       "--settings", "suite_settings"]
            path = os.pathsep.join([place, self.source.tree])
            output = run(command, os.path.join(self.source.tree, "tests"), dict(os.environ, PYTHONPATH=path),
                         log(self.name))
        results = read_unittest(output)
        is_whole = re.search(r"^Ran \d+ tests in", output, re.MULTILINE)
        return results, table.compare(results, is_short) if is_whole else [output[-3000:]]


DJANGO_SETTINGS = """
DATABASES = {name: {"ENGINE": "django.db.backends.sqlite3"} for name in ("default", "other")}
SECRET_KEY = "suite"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
USE_TZ = False
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:6379"}}
"""


class HiredisTest:
    """The test program of hiredis, from Debian's source."""

    name, source = "hiredis", HIREDIS

    def run(self, is_short):
        table = Table(self.name)
        tree = self.source.tree
        run(["make", "-s", "hiredis-test"], tree, dict(os.environ, CFLAGS="-w"), log(self.name))
        program = os.path.join(tree, "hiredis-test")
        # The program gives FLUSHDB 10 ms, which has to be enough for a sync: that of a disk may take longer.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with Daemon(memory) as daemon, Relay(daemon.path, [6379]):
            words = ["-h", "127.0.0.1", "-p", "6379", "-s", daemon.path, "--skip-throughput"]
            output = run([program, *words], tree, dict(os.environ), log(self.name))
        lines = re.findall(r"^#\d+ (.*?): (?:\x1b\[[\d;]*m)?(PASSED|FAILED)", output, re.MULTILINE)
        results = {f"{number:02} {name}": (word.lower(), "") for number, (name, word) in enumerate(lines, 1)}
        # The last line counts the failures: without it, the program did not come to its end.
        is_whole = re.search(r"^(\*\*\* \d+ TESTS FAILED \*\*\*|ALL TESTS PASSED)$", output, re.MULTILINE)
        return results, table.compare(results, is_short) if is_whole else [output[-3000:]]


def log(name):
    return os.path.join(PLACE, name + ".log")


def run(command, place, environment, log):
    """The output of a program, which has ten minutes, also in the file `log` while it runs.

    The program and all that it started end with it, and at SIGTERM.
    """
    before = children()
    with open(log, "w") as output:
        process = subprocess.Popen(command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    try:
        process.wait(timeout=600)
    except subprocess.TimeoutExpired:
        process.kill()
    finally:
        # What was left alone by those that were killed is then a child of this program: see `adopt_orphans`.
        while left := children() - before:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    with open(log, errors="replace") as output:
        return output.read()


OWN = ["-o", "addopts=", "-o", "filterwarnings="]
# What the makers of redis-py run on one server.
STANDALONE = ["-m", "not onlycluster and not redismod"]

SUITES = [
    Pytest("redis-py-asyncio", REDIS, *OWN, *STANDALONE, folders=["tests/test_asyncio"], ports=[6379]),
    Pytest("redis-py", REDIS, *OWN, *STANDALONE, ports=[6379]),
    # Each test starts a server of its own, and waits a second for its end.
    Pytest("python-redis-lock", LOCK, "-p", "no:asyncio", "-n", "4",
           environment={"DJANGO_SETTINGS_MODULE": "test_project.settings"}),
    Pytest("limits", LIMITS, *OWN, "-p", "suite_docker", "-m", "redis and not benchmark", ports=[7379],
           link="/tmp/limits.redis.sock"),
    Pytest("rq", RQ, ports=[6379], one_database=True),
    Pytest("huey", HUEY, "-k", "Redis", folders=("huey/tests",), ports=[6379]),
    DjangoCache(),
    HiredisTest(),
]
