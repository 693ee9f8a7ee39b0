import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// A reload while values in files are written.
struct FileContainerReloadTests {
    private let stage: FileContainerStage

    init() throws { stage = try FileContainerStage() }

    /// Has the limits change so that all files are compared with their keys, and waits for a moment.
    private func reload(_ round: Int) {
        var limits = Limits()
        limits.fileCount += round % 2
        stage.files.reload(limits: limits)
        usleep(10_000)
    }

    /// Sets so many other keys that a reload takes a while.
    private func fill() throws {
        _ = try stage.keyspace.apply(
            try (0..<500).map { .set(try Key("app/other/\($0)"), Array("1".utf8)) }
        )
    }

    /// Writes 1, 2 and so on to a key of its own until the reloads are over.
    private final class Writer: Sendable {
        let lost = Observed<[String]>([])
        private let isOver = Observed(false)
        private let thread = WorkerThread(name: "writer")

        func start(_ body: @escaping @Sendable (_ number: Int) -> String?) {
            thread.start { [lost, isOver] in
                var number = 0
                while !isOver.current {
                    number += 1
                    if let line = body(number) { lost.update { $0.append(line) } }
                }
            }
        }

        func end() -> [String] {
            isOver.update { $0 = true }
            thread.join()
            return lost.current
        }
    }

    @Test func `what is being written at a reload is what the key holds then`()
        throws
    {
        try fill()
        let keyspace = stage.keyspace
        let writer = Writer()
        writer.start { number in
            do {
                let value = Array("\(number)".utf8)
                try keyspace.apply([.set("app/k", value)])
                guard keyspace.entry(for: "app/k")?.value == value else { return "\(number)" }
                try keyspace.apply([.set(Key("app/new/\(number)"), value)])
                guard try keyspace.entry(for: Key("app/new/\(number)")) != nil else {
                    return "new \(number)"
                }
                try keyspace.apply([.delete("app/k")])
                return keyspace.entry(for: "app/k") == nil ? nil : "deleted \(number)"
            } catch {
                return "\(error)"
            }
        }
        for round in 1...10 { reload(round) }
        #expect(writer.end() == [])
        #expect(stage.editCount == 0)
        #expect(try stage.fileValues() == stage.values())
    }

    @Test func `a key that no file can have fails no commit at a reload`()
        throws
    {
        try fill()
        let keyspace = stage.keyspace
        let (writer, other) = (Writer(), Writer())
        writer.start { number in
            do {
                try keyspace.apply([.set("plain", Array("\(number)".utf8))])
                return nil
            } catch {
                return "\(error)"
            }
        }
        other.start { _ in
            _ = keyspace.submit([.set("app/k~", [1])]) { _ in }
            sched_yield()
            return nil
        }
        for round in 1...10 { reload(round) }
        #expect(other.end() == [] && writer.end() == [])
        #expect(stage.keyspace.entry(for: "app/k~") == nil)
    }

    @Test func `what could not be written to its file is no edit after a reload`()
        throws
    {
        try stage.set("app/k", "1")
        // A directory that is missing is looked for once a second, and its keys are refused from then on.
        var isStored = false
        for _ in 0..<10 where !isStored {
            try stage.directory.shell("mv d away")
            isStored = (try? stage.set("app/k", "2")) != nil
            #expect(try readFile(stage.directory.path(of: "away/k")) == Array("1".utf8))
            try stage.directory.shell("mv away d")
        }
        try #require(isStored)
        reload(1)
        #expect(stage.values() == ["app/k": "2"])
        #expect(eventually { (try? stage.fileValues()) == ["app/k": "2"] })
        #expect(stage.editCount == 0)
        stage.close()
        let next = try FileContainerStage(stage.directory)
        #expect(next.values() == ["app/k": "2"] && next.editCount == 0)
    }

    @Test func `a file that was edited as its key left the directory keeps no other there`()
        throws
    {
        let keys = ["app/a", "app/b/c", "app/d", "app/e"]
        for key in keys { try stage.set(key, "1") }
        try stage.shell("echo longer > a; rm -r b")
        stage.close()
        let rules = [FileContainerStage.FileRuleText(keys: "other/", directory: "f")]
        let next = try FileContainerStage(stage.directory, rules: rules)
        defer { next.close() }
        let left = try stage.fileValues()
        #expect(left.keys.allSatisfy { $0 == "app/a" })
    }

    @Test func `other limits hold at once, and what was beyond them is looked at again`() throws {
        var limits = Limits()
        limits.valueByteCount = 3
        stage.files.reload(limits: limits)
        try stage.shell("printf longer > a")
        #expect(stage.notices("d/a is ignored"))
        try stage.shell("printf 1 > b; printf 1 > c")
        #expect(stage.hears("app/b", "1") && stage.hears("app/c", "1"))
        limits.fileCount = 2
        stage.files.reload(limits: limits)
        #expect(stage.notices("limits.files"))
        stage.files.reload(limits: Limits())
        #expect(stage.hears("app/a", "longer"))
        try stage.set("app/d", "1")
        #expect(try stage.fileValues() == stage.values())
    }

    @Test func `another directory that a reload finds is the one that the next start knows`() throws
    {
        try stage.set("app/a", "1")
        try stage.shell("cd ..; mv d away; mkdir d; printf 2 > d/b")
        #expect(stage.notices("was replaced by another one"))
        stage.files.reload(limits: Limits())
        #expect(stage.hears("app/b", "2") && stage.hears("app/a", nil))
        #expect(stage.values() == ["app/b": "2"])
        stage.close()
        try stage.shell("rm b")
        let next = try FileContainerStage(stage.directory)
        #expect(next.values() == [:])
        next.close()
    }

    @Test func `a start that waits while nobody settles a failed commit is refused by a stop`()
        throws
    {
        let backing = HeldBacking(isHeld: false)
        let keyspace = try LocalKeyspace(backing: backing)
        let hasFailed = Observed(false)
        keyspace.settleElsewhere { hasFailed.update { $0 = true } }
        backing.fail(StateError(.noSpace, "full"))
        _ = keyspace.submit([.set("k", [1])]) { _ in }
        #expect(hasFailed.wait { $0 })
        let (begins, outcome) = (Observed(false), Observed<String?>(nil))
        let thread = WorkerThread(name: "attach")
        thread.start {
            begins.update { $0 = true }
            do throws(StateError) {
                try keyspace.attach(nil)
                outcome.update { $0 = "done" }
            } catch {
                outcome.update { $0 = error.message }
            }
        }
        #expect(begins.wait { $0 })
        keyspace.close()
        #expect(outcome.wait { $0 != nil })
        #expect(outcome.current == "the keyspace is closed")
    }
}
