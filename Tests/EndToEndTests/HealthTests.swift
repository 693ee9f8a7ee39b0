import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// `statectl health` and `statectl metrics`.
struct HealthTests {
    private func metric(_ line: String, _ text: String) -> Double? {
        text.split(separator: "\n").first { $0.hasPrefix(line + " ") }
            .flatMap { Double($0.dropFirst(line.count + 1)) }
    }

    @Test func `health is in the exit code: it serves, or does not answer`() throws {
        let daemon = try Daemon()
        let well = try Statectl.run(daemon, "health")
        #expect(well.exitCode == 0 && well.text == "ok\n")
        try daemon.stop()
        let gone = try Statectl.run(daemon, "health", "--json")
        #expect(gone.exitCode == 2 && gone.text.hasPrefix("{\"health\":\"unreachable\","))
    }

    @Test func `a file of metrics is replaced as a whole, or stays as it was`() throws {
        let daemon = try Daemon()
        let directory = try TemporaryDirectory()
        let path = try directory.write("before", to: "stated.prom")
        var before = stat()
        #expect(stat(path, &before) == 0)
        #expect(try Statectl.run(daemon, "metrics", "--textfile", path).exitCode == 0)
        var after = stat()
        #expect(stat(path, &after) == 0 && after.st_ino != before.st_ino)
        #expect(after.st_mode & 0o777 == 0o644)
        let text = String(decoding: try readFile(path), as: UTF8.self)
        #expect(metric("stated_writable", text) == 1)
        try daemon.stop()
        #expect(try Statectl.run(daemon, "metrics", "--textfile", path).exitCode == 3)
        #expect(String(decoding: try readFile(path), as: UTF8.self) == text)
        #expect(try runCommand("ls", ["-A", directory.path]).lines == ["stated.prom"])
    }

    @Test func `a link in the place of the file is replaced, and others can read the file`() throws
    {
        let daemon = try Daemon()
        let directory = try TemporaryDirectory()
        let victim = try directory.write("secret", to: "victim")
        let path = directory.path(of: "stated.prom")
        #expect(symlink(victim, path) == 0)
        let words = "umask 077; exec \"$0\" --socket \"$1\" metrics --textfile \"$2\""
        let result = try runCommand(
            "sh",
            ["-c", words, builtProgram("statectl"), daemon.socketPath, path]
        )
        #expect(result.exitCode == 0, "\(result)")
        #expect(try readFile(victim) == Array("secret".utf8))
        var status = stat()
        #expect(lstat(path, &status) == 0 && status.st_mode == S_IFREG | 0o644)
    }

    @Test func `each metric of the dashboard and of the alerts is one that the daemon has`() throws
    {
        let daemon = try Daemon()
        // Without a handler there is no metric of handlers.
        _ = try Statectl.run(
            daemon,
            "watch",
            "a/",
            "--name",
            "h",
            "--timeout",
            "100ms",
            "--",
            "true"
        )
        let text = try Statectl.run(daemon, "metrics").text
        let known = Set(
            text.matches(of: /# TYPE (stated_[a-z_]+) (\w+)/).flatMap { match -> [Substring] in
                let name = match.1
                return match.2 == "histogram"
                    ? [name + "_bucket", name + "_sum", name + "_count"].map { $0[...] } : [name]
            }
        )
        for file in ["grafana/stated.json", "prometheus/stated.rules.yml"] {
            let bytes = try readFile(packageRoot + "/config/" + file)
            let names = String(decoding: bytes, as: UTF8.self).matches(of: /\bstated_[a-z_]+/)
            #expect(names.count >= 3)
            for name in names { #expect(known.contains(name.0), "\(file): \(name.0)") }
        }
    }

    @Test(.enabled(if: SmallFileSystem.isPossible, "only root may mount a file system"))
    func `a full disk is read-only, for health, status and metrics, until there is room`() throws {
        let directory = try TemporaryDirectory()
        let disk = try SmallFileSystem(at: directory.path(of: "data"))
        let daemon = try Daemon(directory: directory)
        _ = try? directory.write([UInt8](repeating: 7, count: 40 << 20), to: "data/ballast")
        let client = try daemon.connect()
        let value = [UInt8](repeating: 1, count: 64 << 10)
        // On a slow machine a write may fail for another reason before the disk is full.
        var refusals: [StateError] = []
        for number in 0..<1_000 where refusals.last?.code != .noSpace {
            do throws(StateError) {
                try client.set(value, for: try Key("k/\(number)"))
            } catch {
                refusals.append(error)
            }
        }
        #expect(refusals.last?.code == .noSpace, "\(refusals)")
        for _ in 0..<50 { _ = try? client.set(value, for: "more") }
        let full = try Statectl.run(daemon, "health")
        #expect(full.exitCode == 1 && full.text.hasPrefix("read-only: full since 20"), "\(full)")
        #expect(try Statectl.run(daemon, "status").exitCode == 5)
        let text = try Statectl.run(daemon, "metrics").text
        #expect(metric("stated_writable", text) == 0)
        let lines = daemon.log.split(separator: "\n").filter { $0.contains("disk full") }
        #expect((1...2).contains(lines.count), "\(daemon.log)")

        unlink(directory.path(of: "data/ballast"))
        let isWell = try eventually(within: .seconds(30)) {
            try Statectl.run(daemon, "health").exitCode == 0
        }
        #expect(isWell)
        #expect(try Statectl.run(daemon, "status").exitCode == 0)
        try daemon.stop()
        withExtendedLifetime(disk) {}
    }

    @Test func `metrics count commits, their time, denials, errors and the lag of handlers`() throws
    {
        let daemon = try Daemon()
        let handler = try Statectl.run(
            daemon,
            "watch",
            "k/",
            "--name",
            "a\"b",
            "--count",
            "1",
            "--timeout",
            "1ms",
            "--",
            "true"
        )
        #expect(handler.exitCode == 1, "\(handler)")
        let client = try daemon.connect()
        for number in 0..<5 { try client.set(Array("v".utf8), for: try Key("k/\(number)")) }
        #expect(try Statectl.run(daemon, "set", "k/1", "x", "--if-absent").exitCode == 4)
        let text = try Statectl.run(daemon, "metrics").text
        #expect(metric("stated_keys", text) == 5)
        #expect(metric("stated_changes_total", text) == 5)
        // The handler is a commit without a change.
        #expect(metric("stated_commits_total", text) ?? 0 >= 6)
        let batches = metric("stated_sync_duration_seconds_count", text)
        #expect(metric("stated_sync_duration_seconds_bucket{le=\"+Inf\"}", text) == batches)
        #expect(metric("stated_sync_duration_seconds_sum", text) ?? 0 > 0)
        #expect(metric("stated_errors_total{code=\"CONFLICT\"}", text) == 1)
        #expect(
            metric("stated_handler_lag_revisions{uid=\"\(geteuid())\",handler=\"a\\\"b\"}", text)
                == 6
        )
        #expect(metric("stated_writable", text) == 1)
        #expect(metric("stated_clients", text) == 2)
    }

    @Test func `a quote or a backslash in a label is escaped, whatever follows it`() throws {
        let daemon = try Daemon()
        let attached = try Statectl.run(
            ["--socket", daemon.socketPath, "watch", "k/", "--name", "a\"\u{301}b\\\u{301}"]
                + ["--count", "1", "--timeout", "1ms", "--", "true"]
        )
        #expect(attached.exitCode == 1, "\(attached)")
        let text = try Statectl.run(daemon, "metrics").text
        let name = "a\\\"\u{301}b\\\\\u{301}"
        let line = "stated_handler_lag_revisions{uid=\"\(geteuid())\",handler=\"\(name)\"} "
        #expect(Array(text.utf8).firstRange(of: Array(line.utf8)) != nil, "\(text.suffix(300))")
    }

    @Test func `one request of HTTP gets one reply, and others than GET none of it`() throws {
        let daemon = try Daemon()
        func ask(_ request: String) throws -> [String] {
            try Statectl.run(daemon, "metrics", "--http", input: request).text
                .split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
        }
        let metrics = try ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(metrics[0] == "HTTP/1.1 200 OK")
        let body = try #require(metrics.last)
        #expect(body.hasPrefix("# HELP stated_build_info "))
        #expect(metrics.contains("Content-Length: \(body.utf8.count)"))
        #expect(try ask("HEAD /metrics HTTP/1.0\r\n\r\n").last == "")
        #expect(try ask("GET /health HTTP/1.1\r\n\r\n").last == "ok \n")
        #expect(try ask("GET / HTTP/1.1\r\n\r\n")[0] == "HTTP/1.1 404 Not Found")
        #expect(try ask("POST /metrics HTTP/1.1\r\n\r\n")[0].contains("405"))
        #expect(try ask("SET a b\r\n\r\n")[0].contains("400"))
        #expect(try ask("GET /metrics HTTP/1.1\r\n")[0].contains("400"))
        try daemon.stop()
        #expect(try ask("GET /health HTTP/1.1\r\n\r\n")[0].contains("503"))
        #expect(try ask("GET /metrics HTTP/1.1\r\n\r\n")[0].contains("503"))
    }

    @Test func `a client that sends a request byte by byte gets no more time`() throws {
        let program = "'\(builtProgram("statectl"))' metrics --http"
        // Each byte arrives long before a limit for a single read; all of them take a minute.
        let drip = "i=0; while [ $i -lt 600 ] && printf x; do sleep 0.1; i=$((i + 1)); done"
        let slow = try runCommand("/bin/sh", ["-c", "{ \(drip); } 2>&- | \(program)"])
        #expect(slow.text.hasPrefix("HTTP/1.1 408 Request Timeout\r\n"), "\(slow)")
    }

    @Test func `a listing says when only keys below the name exist, and has a limit`() throws {
        let daemon = try Daemon()
        let client = try daemon.connect()
        for number in 0..<5 { try client.set([49], for: try Key("audio/\(number)")) }
        let list = try Statectl.run(daemon, "list", "audio")
        #expect(list.exitCode == 0 && list.output.isEmpty)
        #expect(list.errorText.contains("statectl list audio/"))
        #expect(try Statectl.run(daemon, "list", "none").errorText == "")
        #expect(try Statectl.run(daemon, "list", "audio/", "--limit", "2").lines.count == 2)
        let delete = try Statectl.run(daemon, "delete", "audio/*")
        #expect(delete.text == "0\n" && delete.errorText.contains("not globs"))
        let watch = try Statectl.run(daemon, "watch", "/", "--from", "99", "--timeout", "1s")
        #expect(watch.exitCode == 2 && watch.errorText.contains("above the current revision, 5"))
        #expect(try Statectl.run(daemon, "xyzzy").errorText.contains("lists them"))
        #expect(try Statectl.run(daemon, "lits").errorText.contains("did you mean 'list'?"))
        let terminal = try Statectl.runOnTerminal(daemon, "get absent")
        #expect(terminal.text.contains("there is no key 'absent'"), "\(terminal)")
        #expect(try Statectl.run(daemon, "get", "absent").error.isEmpty)
        #expect(try Statectl.run(daemon, "handlers").text.hasPrefix("NAME"))
    }
}
