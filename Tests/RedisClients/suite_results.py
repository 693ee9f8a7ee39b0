"""Results of tests, and the tables of those that are left out."""
import os
import re
import xml.etree.ElementTree

from suite_fetch import HERE

ORDER = ["skipped", "passed", "failed"]


def read_pytest(path):
    """The outcome of each test of a JUnit file: passed, failed or skipped, and its message."""
    results = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("classname") + "::" + case.get("name") if case.get("classname") else case.get("name")
        outcome, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome, message = "failed", child.get("message") or ""
            elif child.tag == "skipped" and outcome == "passed":
                outcome, message = "skipped", child.get("message") or ""
        # A test that has several entries, as for its end, has the worst of their outcomes.
        if ORDER.index(outcome) >= ORDER.index(results.get(name, ("skipped", ""))[0]):
            results[name] = (outcome, message)
    return results


def read_unittest(text):
    """The outcomes of `unittest` with -v."""
    outcomes = {"ok": "passed", "FAIL": "failed", "ERROR": "failed", "skipped": "skipped"}
    pattern = r"^\w+ \(([\w.]+)\)(?:\n[^\n]*?)? \.\.\. (?:[^\n]*\n)??(ok|FAIL|ERROR|skipped)\b"
    return {name: (outcomes[word], "") for name, word in re.findall(pattern, text, re.MULTILINE)}


class Table:
    """What is left out of a suite, by suites/NAME.tsv: lines of a kind, a pattern and a reason, with a tab between.

    fails   tests that run and fail; * in the pattern is any text
    never   a file or a test that does not run
    full    a file or a test that only the full form runs
    timed   tests that compare times, which a busy machine fails: either outcome is right
    """

    KINDS = ("fails", "never", "full", "timed")

    def __init__(self, name):
        self.path = os.path.join(HERE, "suites", name + ".tsv")
        self.rows = []
        with open(self.path) as opened:
            for number, line in enumerate(opened, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                row = line.rstrip("\n").split("\t")
                if len(row) != 3 or row[0] not in self.KINDS or not row[2]:
                    raise SystemExit(f"{self.path}:{number}: expected a kind, a pattern and a reason, with tabs")
                self.rows.append(row)

    def of(self, kind):
        return [pattern for found, pattern, _ in self.rows if found == kind]

    def compare(self, results, is_short):
        """The problems of the results: what fails against the table, or passes against it."""
        problems, used = [], set()
        patterns = [(pattern, expression(pattern)) for pattern in self.of("fails")]
        timed = [expression(pattern) for pattern in self.of("timed")]
        for name, (outcome, message) in sorted(results.items()):
            if any(compiled.fullmatch(name) for compiled in timed):
                continue
            hits = {pattern for pattern, compiled in patterns if compiled.fullmatch(name)}
            used |= hits
            if outcome == "failed" and not hits:
                problems.append(f"{name} fails: {' '.join(message.split())[:300]}")
            if outcome == "passed" and hits:
                problems.append(f"{name} passes, and {self.path} says that it fails: {', '.join(hits)}")
        if not is_short:
            unused = [pattern for pattern, _ in patterns if pattern not in used]
            problems += [f"{self.path}: no test matches {pattern}" for pattern in unused]
        return problems


def expression(pattern):
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)
