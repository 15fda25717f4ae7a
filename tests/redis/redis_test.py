#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The patch for redis, in a real redis, between clients and a receiver of this test.

    redis_test.py BUILD      redis is built in BUILD/redis, with the shared libraries of BUILD

It needs what builds redis (scripts/setup.sh --full-deps) and Debian's archive, or REDIS_SOURCE.
"""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path("build-dev").resolve()
os.environ.setdefault("BLACKBOX_PROGRAMS", str(BUILD))
import scene  # which finds harness
import harness
from harness import Receiver, attributes

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build():
    """The path of redis-server; None: there is no source."""
    folder = BUILD / "redis"
    folder.mkdir(exist_ok=True)
    (folder / "otel.pc").write_text(
        f"Name: otel\nDescription: of a build directory\nVersion: 0\nCflags: -I{ROOT / 'include'}\n"
        f"Libs: -L{BUILD} -Wl,-rpath,{BUILD} -lotel -lotel-sdk -lotel-api\n")
    newest = max(header.stat().st_mtime for header in (ROOT / "include/otel").glob("*.h"))
    built = folder / "redis-benchmark"
    if built.exists() and built.stat().st_mtime < newest:
        built.unlink()  # what the headers have inline is in redis
    done = subprocess.run([str(ROOT / "integrations/redis/build.sh"), str(folder)],
                          env=dict(os.environ, PKG_CONFIG_PATH=str(folder)))
    if done.returncode == 3:
        return None
    done.check_returncode()
    return folder / "redis-server"


class Case(harness.Case):
    def setUp(self):
        self.maxDiff = None
        self.receiver = self.enterContext(Receiver())

    def start(self, text="", slower_than=10 ** 12, endpoint=None, **environment):
        """A redis whose phases are never slow, or always, with 0."""
        return self.enterContext(scene.Redis(endpoint or self.receiver.endpoint,
                                             f"otel-slower-than {slower_than}\n{text}", **environment))

    def commands(self):
        """The commands' spans, in order."""
        return sorted((span for span in self.receiver.spans() if scene.KINDS[span.kind] == "server"),
                      key=lambda span: span.start_time_unix_nano)

    def below(self, span):
        """The names of all spans below one, sorted."""
        found = [each for each in self.receiver.spans() if each.parent_span_id == span.span_id]
        return sorted([each.name for each in found] + [name for each in found for name in self.below(each)])

    def check(self, sums, children=0):
        """The sums add up, and all that was not withheld has arrived."""
        self.assertEqual([role for role, _ in sums].count("M"), 1, sums)
        self.assertEqual([role for role, _ in sums].count("C"), children, sums)
        for _, each in sums:
            self.assertEqual(each["started"], each["unsampled"] + each["open"] + each["ended"], each)
            self.assertEqual(each["ended"], each["delivered"] + each.get("withheld", 0) + each["dropped"], each)
            self.assertEqual((each["open"], each["dropped"]), (0, 0), each)
        self.assertEqual(sum(each["delivered"] for _, each in sums), len(self.receiver.spans()))
        self.assertEqual(self.receiver.faults, [])
        ids = [span.span_id for span in self.receiver.spans()]
        self.assertEqual(len(set(ids)), len(ids))
        for span in self.receiver.spans():
            self.assertLessEqual(span.start_time_unix_nano, span.end_time_unix_nano)


class Commands(Case):
    def test_each_command_is_a_span_with_the_attributes_of_databases(self):
        redis = self.start()
        client = redis.client()
        client.send(("SET", "k", "v"), ("SELECT", 3), ("CONFIG", "GET", "hz"), ("LPUSH", "l", 1), ("GET", "l"),
                    ("nonsense", "secret"))
        replies = [client.read() for _ in range(6)]
        self.assertEqual(replies[:2], ["OK", "OK"])
        self.check(redis.stop())
        spans = self.commands()
        self.assertEqual([span.name for span in spans],
                         ["set", "select", "config|get", "lpush", "get", "unknown command"])
        self.assertEqual(len({span.trace_id for span in spans}), 6)
        base = {"db.system.name": "redis", "network.peer.address": "127.0.0.1",
                "network.peer.port": client.name[1]}
        self.assertEqual(attributes(spans[0]), {**base, "db.operation.name": "set", "db.namespace": "0"})
        self.assertEqual(attributes(spans[3]), {**base, "db.operation.name": "lpush", "db.namespace": "3"})
        self.assertEqual(attributes(spans[4]), {
            **base, "db.operation.name": "get", "db.namespace": "3", "db.response.status_code": "WRONGTYPE",
            "error.type": "WRONGTYPE"})
        self.assertEqual([span.status.code for span in spans], [0, 0, 0, 0, 2, 2])
        self.assertNotIn(b"secret", b"".join(body for _, _, body in self.receiver.heard))
        held = attributes(self.receiver.resources()[0])
        self.assertEqual((held["service.name"], held["service.version"]), ("redis", "7.0.15"))

    def test_the_operator_names_the_service_and_a_socket_has_no_port(self):
        redis = self.start(OTEL_SERVICE_NAME="cache")
        redis.client(unix=True).say("PING")
        self.check(redis.stop())
        held = attributes(self.commands()[0])
        self.assertEqual(held["network.peer.address"], str(redis.path / scene.SOCKET))
        self.assertNotIn("network.peer.port", held)
        self.assertEqual(attributes(self.receiver.resources()[0])["service.name"], "cache")

    def test_a_pipeline_is_a_trace_for_each_of_its_commands(self):
        redis = self.start()
        client = redis.client()
        client.send(*[("INCR", "n")] * 1000)
        self.assertEqual([client.read() for _ in range(1000)], list(range(1, 1001)))
        self.check(redis.stop())
        self.assertEqual(len({span.trace_id for span in self.commands()}), 1000)

    def test_transactions_and_scripts_show_their_commands_where_they_are_slow(self):
        for slower_than, inside in (0, ["incr", "set"]), (10 ** 12, []):
            self.setUp()
            redis = self.start(slower_than=slower_than)
            client = redis.client()
            client.send(("MULTI",), ("SET", "a", 1), ("INCR", "a"), ("EXEC",),
                        ("EVAL", "redis.call('set', 'a', 1) return redis.call('incr', 'a')", 0))
            self.assertEqual([client.read() for _ in range(5)], ["OK", "QUEUED", "QUEUED", ["OK", 2], 2])
            self.check(redis.stop())
            spans = self.commands()
            self.assertEqual([span.name for span in spans], ["multi", "set", "incr", "exec", "eval"])
            self.assertEqual([self.below(span) for span in spans], [[], [], [], inside, inside])

    def test_an_error_that_a_script_catches_is_none(self):
        redis = self.start()
        client = redis.client()
        self.assertEqual(client.say("EVAL", "redis.pcall('nonsense') return 1", 0), 1)
        self.assertEqual(client.say("EVAL", "return redis.call('nonsense')", 0)[:4], "-ERR")
        self.check(redis.stop())
        self.assertEqual([span.status.code for span in self.commands()], [0, 2])

    def test_a_command_that_blocks_lasts_until_it_is_served(self):
        redis = self.start("appendonly yes\nappendfsync always")
        waits, pushes = redis.client(), redis.client()
        waits.send(("BLPOP", "list", 0))
        scene.wait_for(lambda: "blocked_clients:1" in pushes.say("INFO", "clients"), "a blocked client")
        self.assertEqual(pushes.say("LPUSH", "list", "x"), 1)
        self.assertEqual(waits.read(), ["list", "x"])
        waits.send(("BLPOP", "list", 0))  # the end of redis ends it
        scene.wait_for(lambda: "blocked_clients:1" in pushes.say("INFO", "clients"), "a blocked client")
        self.check(redis.stop())
        [blpop, left] = [span for span in self.commands() if span.name == "blpop"]
        [lpush] = [span for span in self.commands() if span.name == "lpush"]
        self.assertLess(blpop.start_time_unix_nano, lpush.start_time_unix_nano)
        self.assertGreater(blpop.end_time_unix_nano, lpush.start_time_unix_nano)
        self.assertEqual([self.below(span) for span in (blpop, lpush, left)], [["aof flush"], ["aof flush"], []])


class Disk(Case):
    def test_one_flush_is_in_the_trace_of_each_command_that_it_served(self):
        redis = self.start("appendonly yes\nappendfsync always")
        client = redis.client()
        client.send(*[("SET", "k", n) for n in range(50)], ("GET", "k"))
        self.assertEqual([client.read() for _ in range(51)], ["OK"] * 50 + ["49"])
        self.check(redis.stop())
        spans = self.commands()
        self.assertEqual([self.below(span) for span in spans], [["aof flush"]] * 50 + [[]])
        flushes = [span for span in self.receiver.spans() if span.name == "aof flush"]
        times = {(span.start_time_unix_nano, span.end_time_unix_nano) for span in flushes}
        self.assertLess(len(times), 50)
        self.assertEqual({span.trace_id for span in flushes}, {span.trace_id for span in spans[:50]})

    def test_a_child_is_a_span_until_its_end_with_what_it_does_below(self):
        redis = self.start("appendonly yes")
        client = redis.client()
        for command, running in ("BGSAVE", "rdb_bgsave"), ("BGREWRITEAOF", "aof_rewrite"):
            self.assertIn("started", client.say(command))
            scene.wait_for(lambda: running + "_in_progress:0" in client.say("INFO", "persistence"), "an end")
        self.check(redis.stop(), children=2)
        for name, child in ("bgsave", "RDB"), ("bgrewriteaof", "AOF"):
            [span] = [span for span in self.commands() if span.name == name]
            self.assertEqual(self.below(span), sorted([child, "child"]))
            [life] = [span for span in self.receiver.spans() if span.name == child]
            self.assertEqual(attributes(life), {"process.exit.code": 0})
        pids = {attributes(resource)["process.pid"] for resource in self.receiver.resources()}
        self.assertEqual(len(pids), 3)

    def test_a_child_that_is_killed_has_its_span_and_is_an_error(self):
        redis = self.start("rdb-key-save-delay 10000000")
        client = redis.client()
        client.say("SET", "k", "v")
        client.say("BGSAVE")
        log = redis.log().split("Background saving started by pid ")[1]
        os.kill(int(log.split()[0]), signal.SIGKILL)
        scene.wait_for(lambda: "rdb_bgsave_in_progress:0" in client.say("INFO", "persistence"), "an end")
        self.check(redis.stop())
        [life] = [span for span in self.receiver.spans() if span.name == "RDB"]
        self.assertEqual((life.status.code, life.status.message), (2, "Killed"))


class Ends(Case):
    def test_shutdown_and_sigterm_deliver_all(self):
        for number in None, signal.SIGTERM:
            self.setUp()
            redis = self.start(OTEL_BSP_SCHEDULE_DELAY="600000")
            client = redis.client()
            client.say("PING")
            if not number:
                client.send(("SHUTDOWN", "NOSAVE"))
            self.check(redis.stop(number))
            self.assertEqual([span.name for span in self.commands()], ["ping"] + ["shutdown"] * (not number))

    def test_a_daemon_traces(self):
        redis = self.start("daemonize yes")
        redis.client().say("PING")
        self.check(redis.stop())
        self.assertEqual(len(self.commands()), 1)

    def test_without_a_receiver_redis_serves_and_counts(self):
        redis = self.start(endpoint=f"http://127.0.0.1:{scene.free_port()}")
        self.assertEqual(redis.client().say("PING"), "PONG")
        [(_, sums)] = redis.stop()
        self.assertEqual((sums["delivered"], sums["dropped"]), (0, 1))

    def test_an_sdk_that_does_not_start_or_is_disabled_harms_nothing(self):
        for environment in {"OTEL_SDK_DISABLED": "true"}, {"OTEL_CONFIG_FILE": "/nonexistent.yaml"}:
            redis = self.start(**environment)
            self.assertEqual(redis.client().say("SET", "k", "v"), "OK")
            redis.stop()
        self.assertIn("Nothing is traced", redis.log())
        self.assertEqual(self.receiver.requests, [])


def main():
    scene.Redis.program = build()
    if not scene.Redis.program:
        print("redis_test.py: Debian's source of redis cannot be fetched", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else 77)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
