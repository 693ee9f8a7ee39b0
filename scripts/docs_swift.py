"""Compiles the Swift blocks of pages, in a package outside of the repository, and runs those that need no daemon. Used
by scripts/check-docs."""

import os
import re
import subprocess
import tempfile

from docs_pages import ROOT

# Its programs are wrong on purpose; MistakesTests compiles them.
MISTAKES = "docs/mistakes.md"


class Program:
    """A Swift block with those that continue it."""

    def __init__(self, page, index, block):
        place = re.sub(r"^(docs/|Sources/\w+/\w+\.docc/)", "", page.name.removesuffix(".md"))
        self.name = re.sub(r"\W", "_", place) + f"_{index}"
        self.page, self.line, self.blocks = page, block.line, [block]

    @property
    def source(self):
        return "".join(
            f'#sourceLocation(file: "{self.page.name}", line: {block.line + 1})\n' + "\n".join(block.lines) + "\n"
            for block in self.blocks
        )

    def imports(self, products):
        found = re.findall(r"(?m)^(?:@\w+ +)?(?:\w+ +)?import +(\w+)", self.source)
        return [name for name in dict.fromkeys(found) if name in products]

    @property
    def needs_daemon(self):
        return re.search(r"(?m)^import StateClient\b|\.daemon\(", self.source) is not None

    @property
    def is_test(self):
        return re.search(r"(?m)^import (Testing|XCTest)\b", self.source) is not None


def swift_programs(page, failures):
    programs = []
    for block in page.of("swift"):
        begins_with = next((line for line in block.lines if line.strip() and not line.startswith("//")), "")
        if re.match(r"(@\w+ )?(\w+ )?import ", begins_with):
            programs.append(Program(page, len(programs) + 1, block))
        elif programs:
            programs[-1].blocks.append(block)
        else:
            failures.append((page.name, block.line, "this block continues none: it begins with no import"))
    return programs


def write_package(place, programs):
    with open(os.path.join(ROOT, "Package.swift"), encoding="utf-8") as file:
        products = re.findall(r'\.library\(name: "(\w+)"', file.read())
    package, targets = os.path.basename(ROOT), []
    for program in programs:
        kind, folder = ("testTarget", "Tests") if program.is_test else ("executableTarget", "Sources")
        file = "Tests" if program.is_test else "Program" if "@main" in program.source else "main"
        directory = os.path.join(place, folder, program.name)
        os.makedirs(directory)
        with open(os.path.join(directory, f"{file}.swift"), "w", encoding="utf-8") as output:
            output.write(program.source)
        uses = ", ".join(f'.product(name: "{name}", package: "{package}")' for name in program.imports(products))
        targets.append(f'.{kind}(name: "{program.name}", dependencies: [{uses}]),')
    with open(os.path.join(place, "Package.swift"), "w", encoding="utf-8") as output:
        output.write(
            "// swift-tools-version: 6.2\nimport PackageDescription\n\nlet package = Package(\n"
            f'    name: "manual",\n    dependencies: [.package(path: "{ROOT}")],\n    targets: [\n        '
            + "\n        ".join(targets) + "\n    ]\n)\n"
        )


def run_programs(place, programs, scratch):
    """Runs what was compiled, each program in a directory of its own; what a page asserts must hold."""
    failures, count, scratch = [], 0, os.path.abspath(scratch)
    for program in programs:
        if program.is_test or program.needs_daemon:
            continue
        with tempfile.TemporaryDirectory(prefix="stated-program.") as directory:
            failure = run_program([os.path.join(scratch, "debug", program.name)], directory)
        count += 1
        if failure:
            failures.append((program.page.name, program.line, failure))
    if any(program.is_test for program in programs):
        test = ["swift", "test", "--package-path", place, "--scratch-path", scratch, "--skip-build"]
        if failure := run_program(test, place, limit=300):
            failures.append((next(each for each in programs if each.is_test).page.name, 1, failure))
    print(f"check-docs: ran {count} programs, and the tests")
    return failures


def run_program(arguments, directory, limit=60):
    """Returns what went wrong; None if the program ended well."""
    try:
        result = subprocess.run(
            arguments, cwd=directory, timeout=limit, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )
    except subprocess.TimeoutExpired:
        return f"it still runs after {limit} s"
    if result.returncode == 0:
        return None
    return f"it ended with {result.returncode}:\n" + result.stdout[-2000:]


def check_swift(pages, scratch):
    failures = []
    pages = [page for page in pages if page.name != MISTAKES]
    programs = [program for page in pages for program in swift_programs(page, failures)]
    if not programs:
        return failures
    with tempfile.TemporaryDirectory(prefix="stated-docs.") as place:
        write_package(place, programs)
        arguments = ["swift", "build", "--package-path", place, "--scratch-path", scratch]
        arguments += ["--build-tests"] * any(program.is_test for program in programs)
        result = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode == 0:
            print(f"check-docs: compiled {len(programs)} programs of {len({each.page.name for each in programs})} pages")
            return failures + run_programs(place, programs, scratch)
    names = {page.name for page in pages}
    for path, line, message in re.findall(r"(?m)^(\S+\.md):(\d+):\d+: (error: .*)", result.stdout):
        ends = [name for name in names if f"/{path}".endswith(f"/{name}")]
        failure = (max(ends, key=len, default=path), int(line), message)
        if failure not in failures:
            failures.append(failure)
    return failures or [(pages[0].name, 1, "swift build failed\n" + result.stdout[-4000:])]
