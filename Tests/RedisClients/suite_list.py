"""The suites: where each is from, and how it is run, unmodified."""
import glob
import os
import re
import signal
import subprocess
import tempfile

from suite_fetch import Source, python
from suite_results import Table, read_pytest, read_unittest
from suite_serve import Daemon, Relay

DJANGO = Source("django", "5.2.19", "django-5.2.19.tar.gz",
                "ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1")
HUEY = Source("huey", "3.5.4", "huey-3.5.4.tar.gz",
              "328f5a2dd1406621e5edb17d45655ae232ad9f32c0795ca8dc0bfc121dd7b30c")
# The copy of hiredis in the package of PyPI lacks the headers that its test includes.
HIREDIS = Source("hiredis", "0.14.1", "hiredis_0.14.1.orig.tar.gz",
                 "2663b2aed9fd430507e30fc5e63274ee40cdd1a296026e22eafd7d99b01c8913",
                 "http://deb.debian.org/debian/pool/main/h/hiredis/hiredis_0.14.1.orig.tar.gz")


class Pytest:
    """A suite of pytest: all files of its folders, except those that its table says never run."""

    def __init__(self, name, source, *words, folders=("tests",), ports=()):
        self.name, self.source, self.words, self.folders = name, source, words, folders
        self.ports = ports

    def run(self, is_short):
        """The outcomes of the tests, and the problems of the table."""
        table = Table(self.name)
        files, words, problems = self.choose(table, is_short)
        with Daemon() as daemon, Relay(daemon.path, self.ports), tempfile.TemporaryDirectory() as place:
            report = os.path.join(place, "report.xml")
            environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
            command = [python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors",
                       "--timeout=60", "--timeout-method=signal", "--junitxml=" + report, *self.words, *words, *files]
            output = run(command, self.source.tree, environment)
            with open(self.source.tree + ".log", "w") as opened:
                opened.write(output)
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
            output = run(command, os.path.join(self.source.tree, "tests"), dict(os.environ, PYTHONPATH=path))
        results = read_unittest(output)
        return results, table.compare(results, is_short) if results else [output[-3000:]]


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
        run(["make", "-s", "hiredis-test"], tree, dict(os.environ, CFLAGS="-w"))
        program = os.path.join(tree, "hiredis-test")
        with Daemon() as daemon, Relay(daemon.path, [6379]):
            words = ["-h", "127.0.0.1", "-p", "6379", "-s", daemon.path, "--skip-throughput"]
            output = run([program, *words], tree, dict(os.environ))
        lines = re.findall(r"^#\d+ (.*?): (?:\x1b\[[\d;]*m)?(PASSED|FAILED)", output, re.MULTILINE)
        results = {f"{number:02} {name}": (word.lower(), "") for number, (name, word) in enumerate(lines, 1)}
        return results, table.compare(results, is_short) if results else [output[-3000:]]


def run(command, place, environment):
    """The output of a program, which has ten minutes; it and its children end with it."""
    process = subprocess.Popen(command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        return process.communicate(timeout=600)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]
    finally:
        try:
            os.killpg(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass


SUITES = [
    Pytest("huey", HUEY, "-k", "Redis", folders=("huey/tests",), ports=[6379]),
    DjangoCache(),
    HiredisTest(),
]
