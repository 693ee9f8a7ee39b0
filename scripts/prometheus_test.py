#!/usr/bin/env python3
"""Causes each alert of stated, for scripts/prometheus-test: python3 prometheus_test.py PROGRAMS [ALERT…]

Prometheus scrapes a daemon for each alert, and one that is well. It prints a line for each alert that has fired, and
ends with 1 if one has not, or if one has fired without a cause.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import prometheus_causes as causes

RULES = "config/prometheus/stated.rules.yml"
# What the metrics of a histogram are called.
PARTS = ("_bucket", "_sum", "_count")


class Prometheus:
    """A Prometheus with the shipped alerts, but shorter times."""

    def __init__(self, directory, cases):
        self.port = causes.free_port()
        with open(RULES) as file:
            rules = file.read()
        rules = re.sub(r"for: \d+m", "for: 2s", rules)
        rules = re.sub(r"\[\d+m\]", "[15s]", rules)
        write(f"{directory}/rules.yml", rules)
        targets = "".join(
            f"      - {{ targets: ['127.0.0.1:{case.port}'], labels: {{ case: {case.name} }} }}\n" for case in cases
        )
        write(
            f"{directory}/prometheus.yml",
            "global: { scrape_interval: 1s, evaluation_interval: 1s }\n"
            "rule_files: [ rules.yml ]\n"
            "scrape_configs:\n  - job_name: stated\n    static_configs:\n" + targets,
        )
        subprocess.run(["promtool", "check", "config", f"{directory}/prometheus.yml"], check=True, stdout=subprocess.DEVNULL)
        self.log = open(f"{directory}/prometheus.log", "w")
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={directory}/prometheus.yml",
                f"--storage.tsdb.path={directory}/tsdb",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--log.level=warn",
            ],
            stdout=self.log,
            stderr=self.log,
        )

    def ask(self, path, **fields):
        query = urllib.parse.urlencode(fields)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=10) as reply:
            return json.load(reply)["data"]

    def is_ready(self):
        try:
            targets = self.ask("targets")["activeTargets"]
        except OSError:
            return False
        return bool(targets) and all(target["health"] == "up" for target in targets)

    def alerts(self, *states):
        """The alerts in these states, as pairs of the case and the name."""
        found = self.ask("alerts")["alerts"]
        return {(a["labels"]["case"], a["labels"]["alertname"]) for a in found if a["state"] in states}

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def require(holds, problem):
    if not holds:
        raise SystemExit(f"prometheus-test: {problem}")


def wait(seconds, what, is_so):
    """Waits until it is so, and returns how many seconds it took."""
    start = time.monotonic()
    while not is_so():
        require(time.monotonic() - start < seconds, what() if callable(what) else what)
        time.sleep(0.25)
    return time.monotonic() - start


def check_scrape(prometheus, well):
    """All that the daemon exposes arrives, with its type and description."""
    text = well.statectl("metrics").stdout
    check = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    require(check.returncode == 0 and not check.stdout + check.stderr, f"promtool check metrics: {check.stdout}{check.stderr}")
    found = prometheus.ask("series", **{"match[]": '{case="well"}'})
    names = {series["__name__"] for series in found}
    metadata = prometheus.ask("metadata")
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    helps = dict(re.findall(r"^# HELP (\w+) (.+)$", text, re.M))
    for name, kind in kinds.items():
        wanted = [name + part for part in PARTS] if kind == "histogram" else [name]
        require(names.issuperset(wanted), f"{name} was not scraped")
        known = metadata.get(name, [{}])[0]
        require(known.get("type") == kind and known.get("help") == helps[name], f"{name} has the metadata {known}")
    print(f"scraped: {len(kinds)} metrics in {len(found)} series of the daemon that is well; promtool check metrics is clean")


def check_alerts(prometheus, cases):
    """Causes all alerts, and ends the causes."""
    time.sleep(4)
    early = prometheus.alerts("firing", "pending")
    require(not early, f"before any cause: {sorted(early)}")
    start = time.monotonic()
    for case in cases:
        case.cause()
    for case in cases:
        if case.alert:
            wait(120, lambda: missing(prometheus, case), lambda: (case.name, case.alert) in prometheus.alerts("firing"))
            print(f"{case.alert}: fires {time.monotonic() - start:.0f} s after {case.what}")
    allowed = {(case.name, name) for case in cases for name in (case.alert, *case.also)}
    stray = prometheus.alerts("firing") - allowed
    require(not stray, f"without a cause: {sorted(stray)}")
    ending = [case for case in cases if case.alert and case.stop()]
    for case in ending:
        is_over = lambda: (case.name, case.alert) not in prometheus.alerts("firing", "pending")
        wait(120, f"{case.alert} still fires for {case.name}", is_over)
    print(f"over again: {', '.join(case.alert for case in ending)}")


def missing(prometheus, case):
    values = prometheus.ask("query", query=f'{{case="{case.name}"}}')["result"]
    shown = {v["metric"]["__name__"]: v["value"][1] for v in values if re.search("up|writ|ok|lag|watches|memory", v["metric"]["__name__"])}
    return f"{case.alert} does not fire for {case.what}: {shown}; status: {case.statectl('status').stdout}"


def main():
    programs, chosen = sys.argv[1], sys.argv[2:]
    with open(RULES) as file:
        shipped = re.findall(r"- alert: (\w+)", file.read())
    known = {case.alert for case in causes.CASES if case.alert}
    require(known == set(shipped), f"alerts without a cause here, or the other way round: {known ^ set(shipped)}")
    require(set(chosen) <= known, f"there is no alert {', '.join(set(chosen) - known)}")
    with tempfile.TemporaryDirectory(prefix="stated.", dir="/tmp") as directory:
        cases = []
        prometheus = None
        try:
            for kind in causes.CASES:
                if kind.alert and chosen and kind.alert not in chosen:
                    continue
                if not kind.is_possible():
                    print(f"{kind.alert}: not caused here, only by promtool test rules: {kind.needs}")
                    continue
                cases.append(kind(programs, f"{directory}/{kind.name}"))
                cases[-1].start()
            prometheus = Prometheus(directory, cases)
            wait(60, "Prometheus does not scrape all daemons", prometheus.is_ready)
            check_scrape(prometheus, cases[0])
            check_alerts(prometheus, cases)
        finally:
            for case in cases:
                case.end()
            if prometheus:
                prometheus.end()
    print("prometheus-test: all checks passed")


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    main()
