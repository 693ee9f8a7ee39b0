import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Other directories for keys in files while values are written.
struct FileContainerExchangeTests {
    private let stage: FileContainerStage

    init() throws {
        stage = try FileContainerStage()
        mkdir(stage.directory.path(of: "e"), 0o755)
    }

    /// Has the keys below `app/` live where they did, and those of another rule, or not, in files, too.
    private func exchange(withOther: Bool) throws {
        var rules = [FileRule(keys: "app/", directory: stage.directory.path(of: "d"))]
        if withOther {
            rules.append(FileRule(keys: "e/", directory: stage.directory.path(of: "e")))
        }
        let files = FileContainers(rules, limits: Limits(), notice: { _ in })
        try stage.keyspace.exchange(files: files, rules: FileContainerExchangeTests.noRules())
    }

    private static func noRules() -> KeyRules {
        KeyRules([], memoryPatterns: [], usages: [], texts: NoTexts()) { _ in
            preconditionFailure("there are no rules")
        }
    }

    /// Sets so many other keys that an exchange takes a while.
    private func fill() throws {
        _ = try stage.keyspace.apply(
            try (0..<500).map { .set(try Key("app/other/\($0)"), Array("1".utf8)) }
        )
    }

    /// Writes 1, 2 and so on to a key of its own until the exchanges are over.
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

    @Test func `what is being written while directories are exchanged is what the key holds then`()
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
        for round in 1...10 { try exchange(withOther: round % 2 == 1) }
        #expect(writer.end() == [])
        #expect(stage.editCount == 0)
        #expect(try stage.fileValues() == stage.values())
    }

    @Test func `a key that no file can have fails no commit while directories are exchanged`()
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
        for round in 1...10 { try exchange(withOther: round % 2 == 1) }
        #expect(other.end() == [] && writer.end() == [])
        #expect(stage.keyspace.entry(for: "app/k~") == nil)
    }

    @Test func `what could not be written to its file is no edit once directories are exchanged`()
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
        try exchange(withOther: true)
        #expect(stage.values() == ["app/k": "2"])
        #expect(try stage.fileValues() == ["app/k": "2"])
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
        try stage.keyspace.exchange(files: nil, rules: FileContainerExchangeTests.noRules())
        let left = try stage.fileValues()
        #expect(left.keys.allSatisfy { $0 == "app/a" })
    }

    @Test func `a key in memory gets its file as it moves, and none where it is deleted before`()
        throws
    {
        try stage.keyspace.exchange(files: nil, rules: FileContainerExchangeTests.noRules())
        let memory = KeyRules(["app/"], memoryPatterns: ["app/"], usages: [], texts: NoTexts()) {
            _ in
            var settings = KeyRule.Settings()
            settings.backing = KeyRule.Setting(value: .memory, rule: 0)
            return KeyRule(settings, quotas: [])
        }
        try stage.keyspace.exchange(rules: memory)
        for key in ["app/gone", "app/kept", "app/new"] { try stage.set(key, "1") }
        // As a reload does it: the directories come first.
        try exchange(withOther: false)
        try stage.delete("app/gone")
        try stage.set("app/new", "2")
        try stage.keyspace.exchange(rules: FileContainerExchangeTests.noRules())
        let values = ["app/kept": "1", "app/new": "2"]
        #expect(try stage.fileValues() == values)
        try exchange(withOther: true)
        #expect(stage.values() == values && stage.editCount == 0)
    }

    @Test func `an exchange that waits while nobody settles a failed commit is refused by a stop`()
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
        let thread = WorkerThread(name: "exchange")
        thread.start {
            begins.update { $0 = true }
            do throws(StateError) {
                try keyspace.exchange(files: nil, rules: FileContainerExchangeTests.noRules())
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
