"""Tests of the Ansible module against a daemon, without Ansible: STATED and STATECTL name the programs."""

import os
import subprocess
import tempfile
import time
import unittest

import stated_values


class StatedValuesTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.directory.name, "s")
        rules = os.path.join(self.directory.name, "stated.json5")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("{ rules: [{ keys: 'audio/volume', schema: { maximum: 1 } }] }")
        data = os.path.join(self.directory.name, "data")
        words = [os.environ["STATED"], "--socket", self.socket, "--data", data, "--config", rules]
        self.daemon = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while self.statectl("ping")[0] != 0 and time.monotonic() < deadline:
            time.sleep(0.02)

    def tearDown(self):
        self.daemon.kill()
        self.daemon.wait()
        self.directory.cleanup()

    def statectl(self, *words):
        command = [os.environ["STATECTL"], "--socket", self.socket, *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return done.returncode, done.stdout.decode()

    def task(self, values, check_mode=False, prune=False):
        params = {
            "values": values, "prune": prune, "socket": self.socket, "executable": os.environ["STATECTL"],
        }
        return stated_values.apply(params, check_mode)

    def test_a_task_changes_what_differs_and_then_nothing(self):
        self.statectl("set", "audio/volume=0.5", "audio/old=1")
        values = {"audio/": {"volume": 0.7, "on": True, "old": None}, "name": "a\nb"}
        planned = self.task(values, check_mode=True)
        self.assertTrue(planned["changed"])
        self.assertNotIn("revision", planned)
        self.assertEqual(self.statectl("get", "audio/volume")[1], "0.5\n")
        done = self.task(values)
        self.assertFalse(done["failed"])
        self.assertEqual(done["changes"], planned["changes"])
        self.assertEqual(done["diff"]["before"], "audio/old = 1\naudio/volume = 0.5\n")
        self.assertEqual(done["diff"]["after"], "audio/on = true\naudio/volume = 0.7\nname = a\\nb\n")
        self.assertIsInstance(done["revision"], int)
        again = self.task(values)
        self.assertFalse(again["changed"] or again["failed"])
        self.assertEqual(again["diff"], {"before": "", "after": ""})

    def test_prune_deletes_what_the_task_lacks(self):
        self.statectl("set", "a/b=1", "a/c=2", "z=3")
        self.assertFalse(self.task({"a/": {"b": "1"}})["changed"])
        self.assertTrue(self.task({"a/": {"b": "1"}}, prune=True)["changed"])
        self.assertEqual(self.statectl("list")[1], "a/b = 1\nz = 3\n")

    def test_what_a_rule_refuses_fails_in_both_modes_and_changes_nothing(self):
        for check_mode in [True, False]:
            failed = self.task({"a": "1", "audio/volume": 2}, check_mode)
            self.assertTrue(failed["failed"])
            self.assertEqual(failed["rc"], 4)
            self.assertIn("audio/volume", failed["msg"])
        self.assertEqual(self.statectl("list")[1], "")

    def test_a_missing_program_and_a_missing_daemon_fail_with_a_message(self):
        params = {"values": {}, "executable": "/no/such/statectl"}
        self.assertIn("/no/such/statectl", stated_values.apply(params)["msg"])
        params = {"values": {"a": 1}, "executable": os.environ["STATECTL"], "socket": "/no/such"}
        self.assertEqual(stated_values.apply(params)["rc"], 3)


if __name__ == "__main__":
    unittest.main()
