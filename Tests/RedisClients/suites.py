#!/usr/bin/env python3
"""The suites of client libraries, unmodified, against the daemon, compared with the tables of what is left out.

    STATED=.build/release/stated suites.py [--short] [--if-reachable] [--results DIRECTORY] [NAME ...]

suites/NAME.tsv lists the tests that fail, and what does not run, each with the reason. A test that fails and is not in the
table, or is in the table and passes, fails the run.
"""
import argparse
import concurrent.futures
import os
import signal
import sys
import threading
import time

import suite_fetch
import suite_hints
import suite_list
import suite_serve


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true", help="without what the tables call `full`")
    parser.add_argument("--if-reachable", action="store_true", help="without suites that cannot be fetched")
    parser.add_argument("--results", help="writes the outcome of each test into this directory")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a suite; default: all")
    options = parser.parse_args()
    suites = suite_list.SUITES + [suite_hints.Hints()]
    known = [suite.name for suite in suites]
    for name in options.names:
        if name not in known:
            parser.error(f"no suite {name}; there are {', '.join(known)}")
    chosen = [suite for suite in suites if not options.names or suite.name in options.names]
    if not suite_serve.is_apart():
        sys.exit(run_apart(chosen, options))
    suite_serve.enter_network()
    suite_serve.adopt_orphans()
    problems = [problem for suite in chosen for problem in run(suite, options)]
    sys.exit(1 if problems else 0)


def run_apart(chosen, options):
    """Runs each suite in a process and a network of its own, three at a time, for most of their time is waiting.

    Many of their tests compare times to a tenth of a second: a suite that failed beside others runs once more, alone, and
    that counts. Returns the exit code; SIGTERM ends the suites, too.
    """
    missing = fetch(chosen, options.if_reachable)
    begin, processes, is_ended = time.monotonic(), [], threading.Event()
    words = ["--short"] * options.short + (["--results", options.results] if options.results else [])

    def end(*_):
        is_ended.set()
        for process in processes:
            process.terminate()

    def one(name):
        if is_ended.is_set():
            return 1
        process = suite_serve.start_apart([sys.executable, "-B", sys.argv[0], *words, name])
        processes.append(process)
        output = process.communicate()[0]
        print(output, end="", flush=True)
        return process.returncode

    signal.signal(signal.SIGTERM, end)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        names = [suite.name for suite in chosen if suite.name not in missing]
        codes = list(pool.map(one, names))
    for index, name in enumerate(names):
        if codes[index]:
            print(f"{name}: once more, alone", flush=True)
            codes[index] = one(name)
    print(f"suites: {len(codes) - codes.count(0)} of {len(codes)} failed, {time.monotonic() - begin:.0f} s")
    return 128 + signal.SIGTERM if is_ended.is_set() else 1 if any(codes) else 0


def fetch(suites, may_miss):
    """Fetches what the suites need. Returns the names of those that cannot be run."""
    missing = []
    try:
        suite_fetch.prepare()
    except suite_fetch.Unreachable as error:
        if not may_miss:
            raise SystemExit(str(error)) from error
        print(f"{error}: no suite was run but that of redis-cli")
        missing = [suite.name for suite in suites if suite.source]
    for suite in suites:
        if not suite.source or suite.name in missing:
            continue
        try:
            suite.source.fetch()
        except suite_fetch.Unreachable as error:
            if not may_miss:
                raise SystemExit(str(error)) from error
            print(f"{suite.name}: not run: {error}")
            missing.append(suite.name)
    return missing


def run(suite, options):
    begin = time.monotonic()
    results, problems = suite.run(options.short)
    outcomes = [outcome for outcome, _ in results.values()]
    print(f"{suite.name}: {outcomes.count('passed')} passed, {outcomes.count('failed')} left out by the table, "
          f"{outcomes.count('skipped')} skipped by the suite, {time.monotonic() - begin:.0f} s", flush=True)
    for problem in problems[:40]:
        print("  " + problem)
    if len(problems) > 40:
        print(f"  and {len(problems) - 40} more")
    if options.results:
        with open(os.path.join(options.results, suite.name), "w") as opened:
            for name, (outcome, message) in sorted(results.items()):
                opened.write(f"{outcome}\t{name}\t{' '.join(message.split())[:300]}\n")
    return problems


if __name__ == "__main__":
    main()
