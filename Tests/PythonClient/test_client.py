"""Uses the daemon by docs/protocol.md alone: python3 -m unittest, with the programs in STATED and STATECTL."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from client import Client, Commit, Connection, Error, Handler, Lost, Parser, Push, State, Watch, encode

STATED, STATECTL = os.environ["STATED"], os.environ["STATECTL"]


class Daemon:
    """A daemon of its own directory."""

    def __init__(self, *options):
        self.options = options
        self.directory = tempfile.TemporaryDirectory(prefix="stated-python-")
        self.path = os.path.join(self.directory.name, "s")
        self.log = open(os.path.join(self.directory.name, "log"), "w+")
        self.process = None
        self.start()

    def start(self):
        data = os.path.join(self.directory.name, "d")
        command = [STATED, "--socket", self.path, "--data", data, *self.options]
        self.process = subprocess.Popen(command, stderr=self.log)
        Connection.wait(self.path).close()

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def remove(self):
        if self.process.poll() is None:
            self.kill()
        self.log.close()
        self.directory.cleanup()

    def statectl(self, *arguments):
        command = [STATECTL, "--socket", self.path, *arguments]
        return subprocess.run(command, capture_output=True, check=True, timeout=30).stdout


class Case(unittest.TestCase):
    options = ()

    def setUp(self):
        self.daemon = Daemon(*self.options)
        self.addCleanup(self.daemon.remove)

    def client(self):
        client = Client.wait(self.daemon.path)
        self.addCleanup(client.close)
        return client

    def watch(self, *patterns, **position):
        watch = Watch(self.daemon.path, *patterns, **position)
        self.addCleanup(watch.close)
        return watch

    def handler(self, name, *patterns):
        handler = Handler(self.daemon.path, name, *patterns)
        self.addCleanup(handler.close)
        return handler

    def refused(self, code, call, *arguments):
        with self.assertRaises(Error) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.code, code, str(caught.exception))

    def thread(self, work):
        """Runs work in a thread; an exception in it fails the test. Returns a function that waits for its end."""
        failures = []

        def run():
            try:
                work()
            except BaseException as error:
                failures.append(error)

        def join():
            thread.join(60)
            self.assertFalse(thread.is_alive())
            self.assertEqual(failures, [])

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return join


class ParserTests(unittest.TestCase):
    STREAM = (
        b"+OK\r\n-CONFLICT key 'a' is at revision 3\r\n:-7\r\n$5\r\n\r\n\x00\xff+\r\n$0\r\n\r\n_\r\n*0\r\n"
        b"%1\r\n$1\r\nm\r\n*2\r\n:1\r\n_\r\n>3\r\n$12\r\nstate.synced\r\n:1\r\n:33\r\n+END\r\n"
    )

    def check(self, frames):
        error = frames.pop(1)
        self.assertEqual((error.code, str(error)), ("CONFLICT", "CONFLICT key 'a' is at revision 3"))
        push = [b"state.synced", 1, 33]
        self.assertEqual(frames, ["OK", -7, b"\r\n\x00\xff+", b"", None, [], {"m": [1, None]}, push, "END"])
        self.assertEqual([type(f) is Push for f in frames], [False] * 7 + [True, False])

    def test_pieces_of_any_size(self):
        for size in (1, 2, 3, 7, 50, 1000):
            parser, frames = Parser(), []
            for at in range(0, len(self.STREAM), size):
                frames += parser.feed(self.STREAM[at : at + size])
            self.check(frames)

    def test_request(self):
        expected = b"*4\r\n$3\r\nSET\r\n$2\r\n\xc3\xa4\r\n$1\r\n\x00\r\n$1\r\n7\r\n"
        self.assertEqual(encode("SET", "ä", b"\x00", 7), expected)


class ValueTests(Case):
    VALUES = [b"", b"0.7", b"\x00", b"\r\n", b"+OK\r\n", b"$-1\r\n", bytes(range(256)), b"\xff", os.urandom(1 << 20)]

    def test_set_and_get(self):
        client = self.client()
        self.assertIsNone(client.get("v/0"))
        self.assertIsNone(client.entry("v/0"))
        revisions = [client.set(f"v/{i}", value) for i, value in enumerate(self.VALUES)]
        self.assertEqual(revisions, sorted(set(revisions)))
        self.daemon.kill()
        self.daemon.start()
        client = self.client()
        for i, value in enumerate(self.VALUES):
            self.assertEqual(client.get(f"v/{i}"), value)
        rows = client.call("STATE.LIST", "v/")
        self.assertEqual(rows, [[b"v/%d" % i, v, r] for i, (v, r) in enumerate(zip(self.VALUES, revisions))])
        self.assertEqual(client.call("MGET", "v/1", "none", "v/0"), [b"0.7", None, b""])

    def test_entry(self):
        client = self.client()
        first = client.set("a", "1")
        second = client.set("a", "2")
        entry = client.entry("a")
        shown = [entry[name] for name in ("value", "revision", "created", "version", "owner", "expires")]
        self.assertEqual(shown, [b"2", second, first, 2, os.getuid(), None])
        uid, gid, pid, _, name = entry["by"].split(b":", 4)
        self.assertEqual((int(uid), int(gid), int(pid), name), (os.getuid(), os.getgid(), os.getpid(), b"python"))
        self.assertAlmostEqual(entry["time"] / 1000, time.time(), delta=60)
        self.assertEqual(client.delete("a", "b"), 1)
        self.assertIsNone(client.get("a"))

    def test_the_same_values_as_statectl(self):
        client = self.client()
        client.set("a", "grün")
        self.assertEqual(self.daemon.statectl("get", "a"), "grün\n".encode())
        self.daemon.statectl("set", "a", "blau")
        self.assertEqual(client.get("a"), b"blau")

    def test_pipeline(self):
        client = self.client()
        replies = client.pipeline([("SET", "n", "x"), ("INCR", "n"), ("SET", "n", "1"), ("INCR", "n"), ("GET", "n")])
        self.assertEqual([getattr(r, "code", r) for r in replies], ["OK", "ERR", "OK", 2, b"2"])

    def test_a_long_pipeline_is_read_while_it_is_sent(self):
        client, value = self.client(), os.urandom(1 << 20)
        replies = client.pipeline([("ECHO", value)] * 20)
        self.assertTrue(all(reply == value for reply in replies))
        self.assertEqual(len(replies), 20)

    def test_lost_connection(self):
        client = self.client()
        client.set("a", "1")
        self.daemon.kill()
        with self.assertRaises(Lost):
            client.set("a", "2")
        with self.assertRaises(Lost):
            client.get("a")
        with self.assertRaises(OSError):
            Client.wait(self.daemon.path, timeout=0.2)
        self.daemon.start()
        self.assertEqual(self.client().get("a"), b"1")


class WatchTests(Case):
    def test_snapshot_then_live_commits(self):
        client = self.client()
        keys = {b"w/%03d" % i: os.urandom(2000) for i in range(400)}  # more than one piece
        client.call("MSET", *(word for pair in keys.items() for word in pair), "other", "1")
        last = client.set("w/000", "first")
        keys[b"w/000"] = b"first"
        watch = self.watch("w/")
        self.assertEqual(watch.next(), State(last, keys, gap=False))
        self.assertEqual((watch.values, watch.position), (keys, last))

        one = client.set("w/a", b"\x00\xff")
        client.set("other", "2")
        steps = ("SET", "w/a", ""), ("SET", "other", "3"), ("DELETE", "w/000"), ("SET", "w/b", "b"), ("DELETE", "none")
        two = client.apply(*steps)["revision"]
        three = client.set("w/b", "b")
        self.assertEqual(watch.next(), Commit(one, [[b"w/a", b"\x00\xff"]]))
        event, changes = watch.next(), [[b"w/000", None], [b"w/a", b""], [b"w/b", b"b"]]
        self.assertEqual((event.revision, sorted(event.changes)), (two, changes))
        self.assertEqual(watch.next(), Commit(three, [[b"w/b", b"b"]]))
        self.assertIsNone(watch.next(0.2))
        del keys[b"w/000"]
        self.assertEqual(watch.values, keys | {b"w/a": b"", b"w/b": b"b"})

    def test_a_snapshot_that_is_interrupted(self):
        client = self.client()
        value = os.urandom(2000)
        client.call("MSET", *(word for i in range(400) for word in (f"w/{i:03}", value)))
        watch = self.watch("w/")
        watch.start()
        self.assertIsNone(watch._take(watch.connection.push(10)))  # the first piece
        self.assertIn(b"w/000", watch.pieces)
        self.daemon.kill()
        while not watch.connection.ended:
            watch.connection._step(time.monotonic() + 10)
        watch.connection.pushes.clear()  # the others got lost
        self.daemon.start()
        self.client().delete("w/000")
        state = watch.next()
        self.assertNotIn(b"w/000", state.table)
        self.assertEqual(len(state.table), 399)

    def test_snapshot_of_nothing(self):
        watch = self.watch("w/", "exact")
        self.assertEqual(watch.next(), State(0, {}, gap=False))
        revision = self.client().set("exact", "1")
        self.assertEqual(watch.next(), Commit(revision, [[b"exact", b"1"]]))

    def test_only_its_own_pushes(self):
        client, watch = self.client(), self.watch("w/")
        watch.next()
        other = watch.connection.call("STATE.WATCH", "x/", "SNAPSHOT")["watch"]
        client.set("x/a", "1")
        revision = client.set("w/a", "1")
        self.assertEqual(watch.next(), Commit(revision, [[b"w/a", b"1"]]))
        self.assertEqual(watch.values, {b"w/a": b"1"})
        self.assertNotEqual(other, watch.number)
        watch.connection.pushes.extend([Push([b"state.later"]), Push([b"state.later", watch.number])])
        self.assertIsNone(watch.next(0.2))

    def test_own_change_comes_before_the_reply(self):
        client = self.client()
        number = client.call("STATE.WATCH", "w/")["watch"]
        revision = client.set("w/a", "1")
        self.assertEqual(list(client.pushes), [[b"state.change", number, revision, [[b"w/a", b"1"]]]])
        client.pushes.clear()
        self.assertEqual(client.call("STATE.UNWATCH", number), "OK")
        client.set("w/a", "2")
        self.assertIsNone(client.push(0.2))

    def test_previous_and_by(self):
        client = self.client()
        first = client.set("a", "1")
        number = client.call("STATE.WATCH", "a", "SNAPSHOT", "PREVIOUS", "BY")["watch"]
        piece, synced = client.push(5), client.push(5)
        by = client.entry("a")["by"]
        self.assertEqual(piece, [b"state.change", number, 0, [[b"a", b"1", first, by]]])
        self.assertEqual(synced, [b"state.synced", number, first])
        second = client.set("a", "2")
        self.assertEqual(client.push(5), [b"state.change", number, second, [[b"a", b"2", b"1"]], by])

    def test_every_state_is_whole_while_others_write(self):
        stop, writer = threading.Event(), self.client()
        filler = os.urandom(5000)
        writer.call("MSET", *(word for i in range(100) for word in (f"w/m{i:02}", filler)))  # between a and z

        def write():
            i = 0
            while not stop.is_set():
                i += 1
                writer.apply(("SET", "w/a", i), ("SET", "w/z", i))

        join = self.thread(write)
        try:
            for _ in range(20):
                watch = self.watch("w/")
                state = watch.next()
                self.assertIsInstance(state, State)
                self.assertEqual(state.table.get(b"w/a"), state.table.get(b"w/z"))
                revision = state.revision
                for _ in range(5):
                    commit = watch.next()
                    self.assertGreater(commit.revision, revision)
                    revision = commit.revision
                    value = watch.values[b"w/a"]
                    self.assertEqual(sorted(commit.changes), [[b"w/a", value], [b"w/z", value]])
                watch.close()
        finally:
            stop.set()
            join()


class Writer:
    """Commits pairs of equal values one after the other, also over the ends of the daemon."""

    def __init__(self, path):
        self.path, self.stop = path, threading.Event()
        self.acknowledged, self.unknown = [], []

    def run(self):
        client, value = Client.wait(self.path), 0
        while not self.stop.is_set():
            value += 1
            try:
                reply = client.apply(("SET", "w/left", value), ("SET", "w/right", value))
                self.acknowledged.append((reply["revision"], value))
            except Lost:
                client.close()
                self.unknown.append(value)
                client = Client.wait(self.path)
        client.close()

    def wait(self, count):
        """Waits until count more commits are acknowledged."""
        goal, deadline = len(self.acknowledged) + count, time.monotonic() + 30
        while len(self.acknowledged) < goal:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.acknowledged)} of {goal} commits")
            time.sleep(0.001)


class ResumeTests(Case):
    def test_sigkill_in_the_middle_of_writes(self):
        writer, commits = Writer(self.daemon.path), []
        watch = self.watch("w/")
        self.assertEqual(watch.next(), State(0, {}, gap=False))
        join = self.thread(writer.run)
        try:
            for kill in range(4):
                if kill % 2:
                    writer.wait(100)  # the watch is behind when the daemon dies
                else:
                    commits += [watch.next() for _ in range(100)]
                self.daemon.kill()
                seen = len(commits)
                self.daemon.start()
                writer.wait(20)
                self.assertEqual(len(commits), seen)
        finally:
            writer.stop.set()
            join()
        last = writer.acknowledged[-1][0]
        while watch.position < last:
            commits.append(watch.next())
        self.assertIsNone(watch.next(0.3))

        self.assertEqual({type(commit) for commit in commits}, {Commit})  # no gap, no snapshot
        revisions = [commit.revision for commit in commits]
        self.assertEqual(revisions, sorted(set(revisions)))
        delivered = []
        for commit in commits:
            (left, a), (right, b) = sorted(commit.changes)
            self.assertEqual((left, right, a), (b"w/left", b"w/right", b))
            delivered.append((commit.revision, int(a)))
        self.assertEqual([pair for pair in delivered if pair[1] not in writer.unknown], writer.acknowledged)
        self.assertEqual([value for _, value in delivered], sorted({value for _, value in delivered}))
        self.assertLessEqual(len(writer.unknown), 4)
        final = str(delivered[-1][1]).encode()
        self.assertEqual(self.client().call("MGET", "w/left", "w/right"), [final, final])
        self.assertEqual(watch.values, {b"w/left": final, b"w/right": final})

    def test_what_was_missed_comes_once(self):
        client, watch = self.client(), self.watch("w/")
        client.set("w/old", "1")
        state = watch.next()
        watch.close()
        expected = [Commit(client.set(f"w/{i}", i), [[b"w/%d" % i, b"%d" % i]]) for i in range(20)]
        self.daemon.kill()
        self.daemon.start()
        client = self.client()
        expected.append(Commit(client.set("w/20", "x"), [[b"w/20", b"x"]]))
        other = client.set("other", "1")
        resumed = self.watch("w/", position=state.revision, epoch=watch.epoch)
        current = resumed.start()
        self.assertEqual(current, other)
        self.assertEqual([resumed.next() for _ in expected], expected)
        self.assertEqual(resumed.position, expected[-1].revision)
        self.assertIsNone(resumed.next(0.2))
        self.assertEqual(resumed.position, current)  # by state.progress
        expected = Commit(client.set("w/21", "y"), [[b"w/21", b"y"]])
        self.assertEqual(resumed.next(), expected)

    def test_nothing_was_missed(self):
        client = self.client()
        client.set("w/a", "1")
        reply = client.call("STATE.STATUS")
        watch = self.watch("w/", position=reply["revision"], epoch=reply["epoch"].decode())
        self.assertEqual(watch.start(), reply["revision"])
        self.assertIsNone(watch.next(0.2))
        revision = client.set("w/a", "2")
        self.assertEqual(watch.next(), Commit(revision, [[b"w/a", b"2"]]))


class GapTests(Case):
    options = ("--history-changes", "10")

    def setUp(self):
        super().setUp()
        client = self.client()
        client.call("MSET", "w/keep", "k", "w/gone", "g")
        self.past = self.watch("w/")
        self.past.next()
        self.past.close()
        client.delete("w/gone")
        self.revisions = [client.set("w/n", i) for i in range(40)]
        self.table = {b"w/keep": b"k", b"w/n": b"39"}

    def test_gap_then_snapshot(self):
        self.daemon.statectl("compact", "--to", "now")
        last = self.revisions[-1]
        watch = self.past
        self.assertIn(b"w/gone", watch.values)
        self.assertEqual(watch.next(), State(last, self.table, gap=True))
        self.assertEqual((watch.values, watch.position), (self.table, last))
        client = self.client()
        revision = client.set("w/n", "live")
        self.assertEqual(watch.next(), Commit(revision, [[b"w/n", b"live"]]))
        self.daemon.kill()
        self.daemon.start()
        revision = self.client().set("w/n", "after")
        self.assertEqual(watch.next(), Commit(revision, [[b"w/n", b"after"]]))

    def test_pushes_of_a_gap(self):
        client = self.client()
        compacted = client.call("STATE.COMPACT", "TO", self.revisions[35])["compacted"]
        self.assertEqual(compacted, self.revisions[35])
        first, last = self.revisions[0] - 2, self.revisions[-1]
        reply = client.call("STATE.WATCH", "w/", "FROM", compacted - 1, "EPOCH", self.past.epoch)
        pushes = [client.push(5) for _ in range(3)]
        number, pieces = reply["watch"], [[b"w/keep", b"k", first], [b"w/n", b"39", last]]
        self.assertEqual(reply["revision"], last)
        self.assertEqual(pushes[0][:2], [b"state.gap", number])
        self.assertEqual(pushes[1:], [[b"state.change", number, 0, pieces], [b"state.synced", number, last]])
        self.assertIsNone(client.push(0.2))

    def test_the_oldest_revision_that_is_kept(self):
        client = self.client()
        client.call("STATE.COMPACT", "TO", self.revisions[35])
        watch = self.watch("w/", position=self.revisions[35], epoch=self.past.epoch)
        events = [watch.next() for _ in range(4)]
        self.assertEqual(events, [Commit(self.revisions[i], [[b"w/n", b"%d" % i]]) for i in range(36, 40)])
        self.refused("COMPACTED", client.call, "STATE.GET", "w/n", "AT", self.revisions[34])
        self.assertEqual(client.call("STATE.GET", "w/n", "AT", self.revisions[35])["value"], b"35")

    def test_another_store(self):
        client = self.client()
        epoch, data = client.call("STATE.STATUS")["epoch"].decode(), os.path.join(self.daemon.directory.name, "d")
        self.daemon.kill()
        shutil.copytree(data, data + ".copy")
        shutil.rmtree(data)
        os.rename(data + ".copy", data)
        self.daemon.start()
        watch = self.watch("w/", position=self.revisions[-2], epoch=epoch)
        watch.start()
        self.assertNotEqual(watch.epoch, epoch)
        watch.close()  # before the gap has arrived
        state = watch.next()
        self.assertIsInstance(state, State)  # not the commits of the copy after that position
        self.assertEqual(state.table, self.table)
        self.assertGreater(state.revision, 1 << 32)

    def test_another_epoch_or_the_future(self):
        last = self.revisions[-1]
        for position, epoch in ((last, "1"), (last + 1000, self.past.epoch)):
            watch = self.watch("w/", position=position, epoch=epoch)
            self.assertEqual(watch.next(), State(last, self.table, gap=True))
            self.assertEqual((watch.position, watch.epoch), (last, self.past.epoch))


class HandlerTests(Case):
    def test_continues_where_it_was_done(self):
        client = self.client()
        first = client.set("h/a", "0")
        handler = self.handler("backup", "h/")
        state = handler.next()
        self.assertEqual((state.table, state.gap), ({b"h/a": b"0"}, False))
        self.assertGreaterEqual(state.revision, first)
        handler.done(state)
        commits = [Commit(client.set("h/a", i), [[b"h/a", b"%d" % i]]) for i in range(1, 5)]
        self.assertEqual([handler.next(), handler.next()], commits[:2])
        handler.done(commits[0])
        handler.close()  # the second is not done: it comes again

        handler = self.handler("backup", "h/")
        self.assertEqual([handler.next() for _ in range(3)], commits[1:])
        handler.done(commits[2])
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(handler.next(), commits[3])
        handler.done(commits[3])
        revision = self.client().set("h/a", "5")
        self.assertEqual(handler.next(), Commit(revision, [[b"h/a", b"5"]]))
        self.assertIsNone(handler.next(0.2))

    def test_not_done_at_all(self):
        self.client().set("h/a", "0")
        for _ in range(2):
            handler = self.handler("new", "h/")
            self.assertEqual(handler.next().table, {b"h/a": b"0"})
            handler.close()

    def test_a_process_that_dies(self):
        program = """if True:
            import os, signal, sys
            from client import Handler
            handler = Handler(sys.argv[1], "child", "h/")
            handler.done(handler.next())
            print("ready", flush=True)
            handler.done(handler.next())
            print(handler.next().revision, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        """
        folder = os.path.dirname(os.path.abspath(__file__))
        child = subprocess.Popen([sys.executable, "-c", program, self.daemon.path], cwd=folder, stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), b"ready\n")
        client = self.client()
        self.refused("CONFLICT", client.call, "STATE.HANDLER", "ATTACH", "child", "h/")
        revisions = [client.set("h/a", i) for i in range(3)]
        self.assertEqual(child.stdout.readline(), b"%d\n" % revisions[1])
        self.assertEqual(child.wait(), -signal.SIGKILL)
        handler = self.handler("child", "h/")
        self.assertEqual([handler.next().revision, handler.next().revision], revisions[1:])

    def test_rules_of_names(self):
        client, other = self.client(), self.client()
        attach = "STATE.HANDLER", "ATTACH", "n"
        revision = client.set("h/a", "1")
        reply = client.call(*attach, "h/")
        self.assertEqual([reply[name] for name in ("position", "new", "revision")], [revision, 1, revision])
        self.assertEqual(reply["epoch"], reply["current_epoch"])
        self.assertEqual(client.call(*attach, "h/")["new"], 0)
        self.refused("CONFLICT", other.call, *attach, "h/")
        self.refused("CONFLICT", other.call, "STATE.HANDLER", "DONE", "n", revision)
        self.refused("CONFLICT", client.call, "STATE.HANDLER", "FORGET", "n")
        self.refused("CONFLICT", client.call, *attach, "x/")
        self.assertEqual(client.call("STATE.HANDLER", "DONE", "n", revision), "OK")
        self.refused("CONFLICT", client.call, "STATE.HANDLER", "DONE", "n", revision - 1)
        self.refused("ERR", client.call, "STATE.HANDLER", "DONE", "n", revision + 1000)
        [row] = client.call("STATE.HANDLERS")
        shown = row["name"], row["patterns"], row["position"], row["pid"]
        self.assertEqual(shown, (b"n", [b"h/"], revision, os.getpid()))
        self.assertEqual(client.call(*attach, "RESET", "SNAPSHOT", "x/")["position"], None)
        client.close()
        self.assertEqual(other.call("STATE.HANDLER", "FORGET", "n"), 1)
        self.assertEqual(other.call("STATE.HANDLER", "FORGET", "n"), 0)
        self.assertEqual(other.call("STATE.HANDLERS"), [])


class TransactionTests(Case):
    def test_one_commit(self):
        client, watch = self.client(), self.watch("t/")
        watch.next()
        replies = client.transaction(("SET", "t/a", "1"), ("INCR", "t/a"), ("GET", "t/a"), ("STATE.SET", "t/b", "x"))
        revision = replies[3]["revision"]
        self.assertEqual(replies, ["OK", 2, b"2", {"revision": revision, "durability": b"synced"}])
        event = watch.next()
        self.assertEqual((event.revision, sorted(event.changes)), (revision, [[b"t/a", b"2"], [b"t/b", b"x"]]))
        self.assertIsNone(watch.next(0.2))

    def test_watch_conflict(self):
        client, other = self.client(), self.client()
        client.set("t/a", "1")
        client.call("WATCH", "t/a")
        other.set("t/a", "2")
        self.assertIsNone(client.transaction(("SET", "t/a", "3"), ("SET", "t/b", "3")))
        self.assertEqual(client.call("MGET", "t/a", "t/b"), [b"2", None])
        self.assertEqual(client.transaction(("SET", "t/a", "3")), ["OK"])  # EXEC has forgotten the keys
        client.call("WATCH", "t/a", "t/b")
        other.set("t/c", "1")
        self.assertEqual(client.transaction(("SET", "t/a", "4")), ["OK"])
        client.call("WATCH", "t/a")
        client.set("t/a", "own")  # a change of the own connection counts too
        self.assertIsNone(client.transaction(("SET", "t/a", "5")))
        client.call("WATCH", "t/a")
        other.set("t/a", "6")
        client.call("UNWATCH")
        self.assertEqual(client.transaction(("SET", "t/a", "7")), ["OK"])

    def test_an_absent_key_that_is_absent_again(self):
        client, other = self.client(), self.client()
        client.call("WATCH", "t/a")
        other.set("t/a", "1")
        other.delete("t/a")
        self.assertIsNone(client.transaction(("SET", "t/b", "1")))

    def test_an_error_undoes_everything(self):
        client = self.client()
        client.set("t/a", "abc")
        before = client.entry("t/a")
        self.refused("EXECABORT", client.transaction, ("SET", "t/b", "1"), ("INCR", "t/a"))
        self.refused("EXECABORT", client.transaction, ("SET", "t/b", "1"), ("STATE.SET", "t/a", "2", "IFREV", 0))
        self.refused("ERR", client.transaction, ("SET", "t/b", "1"), ("NONSENSE",))
        self.assertIsNone(client.get("t/b"))
        self.assertEqual(client.entry("t/a"), before)

    def test_apply(self):
        client = self.client()
        reply = client.apply(("CHECK", "owner", 0), ("SET", "a", "1"), ("DELETE", "none"), ("SET", "b", b"\x00"))
        self.assertEqual(reply["count"], 2)
        first = reply["revision"]
        self.assertEqual([client.entry(key)["revision"] for key in "ab"], [first, first])
        for steps in (
            (("SET", "b", "2"), ("CHECK", "a", first + 1)),
            (("SET", "b", "2"), ("CHECK", "a", 0)),
            (("SET", "b", "2"), ("SET", "a", "2", "IFREV", 0)),
            (("SET", "b", "2"), ("DELETE", "a", "IFREV", first + 1)),
        ):
            self.refused("CONFLICT", client.apply, *steps)
        self.assertEqual(client.call("MGET", "a", "b"), [b"1", b"\x00"])
        reply = client.apply(("CHECK", "b", first), ("SET", "b", "2", "IFREV", first), ("DELETE", "a", "IFREV", first))
        self.assertEqual(reply["count"], 2)
        self.assertEqual(client.call("MGET", "a", "b"), [None, b"2"])
        self.assertEqual(client.apply(("DELETE", "none")), {"revision": reply["revision"], "count": 0})

    def test_compare_and_set_by_several_clients(self):
        conflicts = []

        def count(client):
            def one_more(value):
                conflicts.append(None)
                return int(value or 0) + 1

            for _ in range(50):
                client.modify("counter", one_more)

        joins = [self.thread(lambda client=client: count(client)) for client in (self.client(), self.client())]
        for join in joins:
            join()
        self.assertEqual(self.client().get("counter"), b"100")
        self.assertEqual(self.client().entry("counter")["version"], 100)
        self.assertGreaterEqual(len(conflicts), 100)


class ErrorTests(Case):
    def test_codes(self):
        client = self.client()
        revision = client.set("a", "abc")
        big = bytes((8 << 20) + 1)
        for code, *request in (
            ("ERR", "NONSENSE"),
            ("ERR", "GET"),
            ("ERR", "SET", "a/", "1"),
            ("ERR", "SET", "", "1"),
            ("ERR", "SET", "x" * 1025, "1"),
            ("ERR", "SET", b"\xff", "1"),
            ("ERR", "SET", "a\nb", "1"),
            ("ERR", "SET", "a", "1", "EX", 0),
            ("ERR", "INCR", "a"),
            ("ERR", "STATE.SET", "a", "1", "IFREV", "01"),
            ("ERR", "STATE.APPLY", 2, "SET", "a", "1"),
            ("ERR", "STATE.GET", "a", "AT", revision + 1000),
            ("ERR", "STATE.WATCH", "a", "SNAPSHOT", "FROM", 0),
            ("ERR", "STATE.UNWATCH", 99),
            ("ERR", "EXEC"),
            ("NOPROTO", "HELLO", 4),
            ("WRONGPASS", "AUTH", "somebody", "x"),
            ("CONFLICT", "STATE.SET", "a", "1", "NX"),
            ("CONFLICT", "STATE.SET", "none", "1", "XX"),
            ("CONFLICT", "STATE.SET", "a", "1", "IFREV", revision + 1),
            ("CONFLICT", "STATE.SET", "a", "1", "IFREV", 0),
            ("CONFLICT", "STATE.SET", "a", "1", "IFVAL", "abcd"),
            ("CONFLICT", "STATE.APPLY", 2, "SET", "b", "1", "CHECK", "a", 0),
            ("TOOBIG", "SET", "a", big),
        ):
            with self.subTest(code=code, request=request[:4] if big not in request else "big"):
                self.refused(code, client.call, *request)
        self.assertEqual(client.call("STATE.LIST", "/"), [[b"a", b"abc", revision]])  # nothing has changed
        self.assertIsNone(client.call("SET", "a", "1", "NX"))
        self.assertEqual(client.set("b", big[1:]), revision + 1)

    def test_protocol_error_ends_the_connection(self):
        client = self.client()
        client.socket.sendall(b"*1\r\n:1\r\n")
        with self.assertRaises(Lost) as caught:
            client.push(10)
        self.assertRegex(str(caught.exception), "^ERR Protocol error")

    def test_watch_needs_resp3(self):
        client = self.client()
        client.socket.sendall(encode("HELLO", 2) + encode("STATE.WATCH", "a"))
        received, deadline = b"", time.monotonic() + 10
        while b"-ERR STATE.WATCH" not in received and time.monotonic() < deadline:
            received += client.socket.recv(4096)
        self.assertIn(b"\r\n-ERR STATE.WATCH", received)


class LimitTests(Case):
    options = ("--clients", "2")

    def test_too_many_clients(self):
        clients = []
        with self.assertRaises(Error) as caught:
            for _ in range(2 + 8 + 1):  # 8 more for root and the user of the daemon
                clients.append(Connection(self.daemon.path))
                self.addCleanup(clients[-1].close)
        self.assertEqual(str(caught.exception), "ERR max number of clients reached")
        self.assertEqual(len(clients), 10)
        timer = threading.Timer(0.3, clients[0].close)
        timer.start()
        self.addCleanup(timer.join)
        self.assertEqual(self.client().call("PING"), "PONG")


class RuleTests(Case):
    def setUp(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json5", prefix="stated-python-") as file:
            file.write('{ rules: [{ keys: "audio/volume", schema: { type: "number", minimum: 0, maximum: 1 } }] }')
            file.flush()
            self.options = ("--config", file.name)
            super().setUp()

    def test_rejected(self):
        client = self.client()
        self.assertEqual(client.call("SET", "audio/volume", "0.5"), "OK")
        self.refused("REJECTED", client.call, "SET", "audio/volume", "1.5")
        self.refused("REJECTED", client.apply, ("SET", "a", "1"), ("SET", "audio/volume", "loud"))
        self.refused("EXECABORT", client.transaction, ("SET", "a", "1"), ("SET", "audio/volume", "2"))
        self.assertEqual(client.call("MGET", "a", "audio/volume"), [None, b"0.5"])


if __name__ == "__main__":
    unittest.main()
