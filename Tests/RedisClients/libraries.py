#!/usr/bin/env python3
"""Client libraries as they are on PyPI, against a daemon: what they do with strings, keys, times and locks.

    STATED=.build/release/stated python3 -m unittest discover -s Tests/RedisClients -p libraries.py

A library that is not installed is skipped; requirements.txt beside this file names those that are tested.

Left out, with the reason: moving windows of limits, semaphores of huey, queues of rq and huey, waiting in python-redis-lock
(lists, hashes and sorted sets); sessions. What the libraries' own suites run and leave out is in suites/.
"""
import asyncio
import concurrent.futures
import importlib.util
import os
import subprocess
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

try:
    import redis
except ImportError:
    redis = None


class Served(unittest.TestCase):
    """A daemon with an empty store for each test."""

    def setUp(self):
        if redis is None:
            self.skipTest("redis is not installed")
        self.place = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.place.name, "s")
        self.daemon = subprocess.Popen(
            [os.environ["STATED"], "--socket", self.path, "--data", self.place.name + "/data"],
            stderr=subprocess.DEVNULL,
        )
        deadline = time.time() + 30
        while True:
            try:
                self.redis = redis.Redis(unix_socket_path=self.path)
                self.redis.ping()
                break
            except redis.ConnectionError:
                if time.time() > deadline:
                    raise
                time.sleep(0.02)

    def tearDown(self):
        self.daemon.terminate()
        self.daemon.wait()
        self.place.cleanup()

    @property
    def url(self):
        return "unix://" + self.path

    def require(self, name):
        try:
            return __import__(name)
        except ImportError:
            self.skipTest(name + " is not installed")


class RedisPy(Served):
    def test_strings_keys_and_times(self):
        r = self.redis
        self.assertTrue(r.set("a", 1, ex=100, nx=True))
        self.assertEqual(r.incrbyfloat("a", 0.5), 1.5)
        self.assertEqual(r.getrange("a", 0, 0), b"1")
        self.assertEqual(r.rename("a", "b"), True)
        self.assertAlmostEqual(r.ttl("b"), 100, delta=1)
        self.assertEqual(r.copy("b", "c"), True)
        self.assertEqual(r.object("refcount", "c"), 1)
        self.assertGreater(r.memory_usage("c"), 0)
        self.assertEqual(r.restore("d", 0, r.dump("c")), b"OK")
        self.assertEqual(r.touch("c", "d", "e"), 2)
        self.assertIn(r.randomkey(), (b"b", b"c", b"d"))
        self.assertEqual(r.getset("d", 5), b"1.5")
        self.assertTrue(r.flushdb())
        self.assertEqual(r.dbsize(), 0)

    def test_server(self):
        r = self.redis
        self.assertEqual(r.role()[0], b"master")
        self.assertEqual(r.wait(0, 100), 0)
        self.assertEqual(r.module_list(), [])
        self.assertIsInstance(r.slowlog_get(), list)
        self.assertIn("cmdstat_ping", r.info("commandstats"))
        self.assertTrue(r.config_resetstat())
        self.assertEqual(r.client_kill_filter(_id=999999), 0)
        self.assertIn("addr", r.client_list()[0])
        self.assertTrue(r.client_info()["id"] > 0)
        self.assertIn("get", r.command())
        self.assertEqual(r.command_getkeys("MSET", "a", 1, "b", 2), ["a", "b"])
        with r.monitor() as monitor:
            self.redis.set("seen", 1)
            while "seen" not in monitor.next_command()["command"]:
                pass

    def test_lock(self):
        r = self.redis
        with r.lock("l", timeout=5) as lock:
            self.assertTrue(lock.owned())
            self.assertTrue(lock.extend(10))
            self.assertTrue(lock.reacquire())
            self.assertFalse(r.lock("l", timeout=5, blocking=False).acquire())
        self.assertFalse(r.exists("l"))
        lock = r.lock("l", timeout=5)
        lock.acquire()
        r.set("l", "somebody else")
        with self.assertRaises(redis.exceptions.LockError):
            lock.release()
        other = r.lock("m", timeout=0.05)
        other.acquire()
        self.assertTrue(r.lock("m", timeout=5, blocking_timeout=5).acquire())

    def test_pipelines_and_watch(self):
        with self.redis.pipeline() as pipe:
            pipe.watch("n")
            pipe.multi()
            pipe.setnx("n", 1).incr("n").expire("n", 50).ttl("n")
            self.assertEqual(pipe.execute(), [True, 2, True, 50])

    def test_client_side_cache(self):
        try:
            from redis.cache import CacheConfig
        except ImportError:
            self.skipTest("this version of redis has no cache")
        cached = redis.Redis(unix_socket_path=self.path, protocol=3, cache_config=CacheConfig())
        self.redis.set("a", 1)
        self.assertEqual(cached.get("a"), b"1")
        for number in range(2, 30):
            self.redis.set("a", number)
            self.assertEqual(cached.get("a"), b"%d" % number)
            self.assertEqual(cached.get("a"), b"%d" % number)

    def test_notifications(self):
        p = self.redis.pubsub()
        p.psubscribe("__keyevent@0__:*")
        p.get_message(timeout=5)
        self.redis.set("a", 1, px=60)
        self.redis.incr("a")
        events = [p.get_message(timeout=5)["channel"] for _ in range(4)]
        self.assertEqual([e.split(b":")[1] for e in events], [b"set", b"expire", b"incrby", b"expired"])


class Locks(Served):
    def test_python_redis_lock(self):
        redis_lock = self.require("redis_lock")
        with redis_lock.Lock(self.redis, "l", expire=20) as lock:
            lock.extend(30)
            self.assertFalse(redis_lock.Lock(self.redis, "l", expire=20).acquire(blocking=False))
        self.assertTrue(redis_lock.Lock(self.redis, "l", expire=20).acquire(blocking=False))
        redis_lock.reset_all(self.redis)
        self.assertTrue(redis_lock.Lock(self.redis, "l", expire=20).acquire(blocking=False))

    def test_redis_lock(self):
        # Its module has the name of that of python-redis-lock, so that it is installed apart.
        path = os.path.join(HERE, "..", "..", ".build", "clients", "redis-lock", "redis_lock", "__init__.py")
        if not os.path.exists(path):
            self.skipTest("redis-lock is not installed")
        spec = importlib.util.spec_from_file_location("redis_lock_apart", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        locks = [module.RedisLock(self.redis, "l", lock_timeout=60) for _ in range(8)]

        def acquire():
            with concurrent.futures.ThreadPoolExecutor(len(locks)) as pool:
                return [lock for lock, has in zip(locks, pool.map(lambda lock: lock.acquire(), locks)) if has]

        for _ in range(20):
            holders = acquire()
            self.assertEqual(len(holders), 1)
            self.assertEqual(acquire(), [])
            holders[0].release()
            self.assertFalse(self.redis.exists("l"))
        # The value is the time at which the lock ends: one in the past is of a holder that is gone.
        gone = module.RedisLock(self.redis, "l", lock_timeout=60)
        self.assertTrue(gone.acquire())
        self.redis.set("l", int(time.time()) - 2)
        gone.acquire_time -= 63
        self.assertEqual(len(acquire()), 1)
        gone.release()
        self.assertTrue(self.redis.exists("l"))

    def test_redlock(self):
        self.require("redlock")
        from redlock import RedLock
        lock = RedLock("l", connection_details=[{"unix_socket_path": self.path}], ttl=5000)
        self.assertTrue(lock.acquire())
        self.assertFalse(RedLock("l", connection_details=[{"unix_socket_path": self.path}], retry_times=1).acquire())
        lock.release()
        self.assertFalse(self.redis.exists("l"))

    def test_pottery(self):
        self.require("pottery")
        from pottery import NextID, Redlock
        lock = Redlock(key="l", masters={self.redis}, auto_release_time=5)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertGreater(lock.locked(), 0)
        lock.extend()
        lock.release()
        ids = NextID(key="ids", masters={self.redis})
        self.assertEqual([next(ids), next(ids)], [1, 2])

    def test_rq(self):
        self.require("rq")
        try:
            from rq.scripts import acquire_or_refresh_lock, release_lock
        except ImportError:
            self.skipTest("this version of rq has other locks")
        self.assertEqual(acquire_or_refresh_lock(self.redis, "l", "me", 30), "acquired")
        self.assertEqual(acquire_or_refresh_lock(self.redis, "l", "me", 30), "refreshed")
        self.assertEqual(acquire_or_refresh_lock(self.redis, "l", "you", 30), "taken")
        self.assertFalse(release_lock(self.redis, "l", "you"))
        self.assertTrue(release_lock(self.redis, "l", "me"))


class Limits(Served):
    def test_windows(self):
        self.require("limits")
        from limits import parse, storage, strategies
        store = storage.storage_from_string("redis+unix://" + self.path)
        three = parse("3 per minute")
        for strategy in (strategies.FixedWindowRateLimiter, strategies.SlidingWindowCounterRateLimiter):
            limiter = strategy(store)
            self.assertEqual([limiter.hit(three, strategy.__name__) for _ in range(4)], [True] * 3 + [False])
            self.assertEqual(limiter.get_window_stats(three, strategy.__name__).remaining, 0)
            limiter.clear(three, strategy.__name__)
            self.assertTrue(limiter.hit(three, strategy.__name__))
        self.assertGreater(store.reset(), 0)


class Django(Served):
    def test_cache(self):
        self.require("django")
        from django.core.cache.backends.redis import RedisCache
        cache = RedisCache(self.url, {})
        cache.set("a", {"x": [1]})
        self.assertEqual(cache.get("a"), {"x": [1]})
        self.assertFalse(cache.add("a", 2))
        self.assertTrue(cache.add("b", 1, timeout=50))
        self.assertEqual(cache.incr("b", 5), 6)
        self.assertTrue(cache.touch("b", 100))
        self.assertEqual(cache.set_many({"c": 1, "d": 2}, timeout=30), [])
        self.assertEqual(cache.get_many(["c", "d", "e"]), {"c": 1, "d": 2})
        self.assertTrue(cache.has_key("c"))
        cache.set("gone", 1, timeout=0)
        self.assertIsNone(cache.get("gone"))
        cache.delete_many(["c", "d"])
        cache.clear()
        self.assertIsNone(cache.get("a"))


class Hiredis(Served):
    def test_replies(self):
        hiredis = self.require("hiredis")
        import socket
        s = socket.socket(socket.AF_UNIX)
        s.connect(self.path)
        reader = hiredis.Reader()

        def ask(*words):
            s.sendall(hiredis.pack_command(words))
            while True:
                reply = reader.gets()
                if reply is not False:
                    return reply
                reader.feed(s.recv(65536))

        self.assertEqual(ask("SET", "a", "1", "EX", "50"), b"OK")
        self.assertEqual(ask("GETEX", "a", "PERSIST"), b"1")
        self.assertEqual(ask("MGET", "a", "b"), [b"1", None])
        self.assertEqual(ask("HELLO", "3")[b"proto"], 3)
        self.assertEqual(ask("CLIENT", "TRACKING", "ON"), b"OK")


if __name__ == "__main__":
    unittest.main()
