"""Sources of the libraries whose suites run: from PyPI and Debian, checked against their SHA-256."""
import hashlib
import os
import subprocess
import sys
import tarfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
PLACE = os.path.join(HERE, "..", "..", ".build", "clients")
REQUIREMENTS = os.path.join(HERE, "suites", "requirements.txt")


class Unreachable(Exception):
    """A package cannot be fetched."""


class Source:
    """A source archive: the package and version at PyPI, or an address; the name of its file, and its SHA-256."""

    def __init__(self, package, version, file, sha256, address=None):
        self.package, self.version, self.file, self.sha256, self.address = package, version, file, sha256, address

    @property
    def tree(self):
        return os.path.abspath(os.path.join(PLACE, "sources", self.package + "-" + self.version))

    def fetch(self):
        """Unpacks the archive anew, after it was fetched if it is not there.

        Raises Unreachable if it cannot be fetched, and ValueError if it is another than the pinned one.
        """
        archives = os.path.join(PLACE, "archives")
        os.makedirs(archives, exist_ok=True)
        archive = os.path.join(archives, self.file)
        if not os.path.exists(archive):
            self.download(archives, archive)
        with open(archive, "rb") as opened:
            found = hashlib.sha256(opened.read()).hexdigest()
        if found != self.sha256:
            raise ValueError(f"{archive} has the SHA-256 {found}, not {self.sha256}: delete it, or pin the new one")
        if not os.path.isdir(self.tree):
            self.unpack(archive)

    def unpack(self, archive):
        # Before Python 3.11.4 there are no filters; the archive is the pinned one in any case.
        options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(archive) as opened:
            for member in opened.getmembers():
                # The first folder of the archive has the name that its maker gave it.
                member.name = member.name.partition("/")[2] or "."
                opened.extract(member, self.tree + ".part", **options)
        os.rename(self.tree + ".part", self.tree)

    def download(self, archives, archive):
        if self.address:
            try:
                urllib.request.urlretrieve(self.address, archive + ".part")
            except OSError as error:
                raise Unreachable(f"{self.address}: {error}") from error
            os.rename(archive + ".part", archive)
            return
        words = ["download", "--quiet", "--no-binary", ":all:", "--no-deps", "--dest", archives]
        if pip(*words, f"{self.package}=={self.version}") != 0:
            raise Unreachable(f"{self.package} {self.version} cannot be fetched from PyPI")


def python():
    return os.path.abspath(os.path.join(PLACE, "suites", "bin", "python3"))


def pip(*words):
    return subprocess.call([python(), "-m", "pip", "--disable-pip-version-check", *words])


def prepare():
    """Makes the environment in which the suites run. Raises Unreachable if their requirements cannot be installed."""
    if not os.path.exists(python()):
        subprocess.check_call([sys.executable, "-m", "venv", os.path.join(PLACE, "suites")])
    done = os.path.join(PLACE, "suites", "requirements.txt")
    with open(REQUIREMENTS) as opened:
        text = opened.read()
    if os.path.exists(done) and open(done).read() == text:
        return
    begin = time.time()
    if pip("install", "--quiet", "-r", REQUIREMENTS) != 0:
        raise Unreachable("the requirements of the suites cannot be installed")
    with open(done, "w") as opened:
        opened.write(text)
    print(f"requirements of the suites installed in {time.time() - begin:.0f} s")
