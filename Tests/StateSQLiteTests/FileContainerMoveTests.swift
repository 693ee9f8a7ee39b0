import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Directories that other rules have than before, at a start and in use.
struct FileContainerMoveTests {
    private typealias Rule = FileContainerStage.FileRuleText

    /// The values that the files below a directory hold, by their paths.
    private func files(_ name: String, in directory: TemporaryDirectory) throws -> [String: String]
    {
        let place = directory.path(of: name)
        let paths = try runCommand("find", [place, "-type", "f", "-not", "-path", "*/.*"])
        return try Dictionary(
            uniqueKeysWithValues: paths.lines.map { path in
                (
                    String(path.dropFirst(place.utf8.count + 1)),
                    try runCommand("cat", [path]).lines.joined(separator: "\n")
                )
            }
        )
    }

    @Test func `a directory whose rule says another prefix loses no key, and makes none`() throws {
        let directory = try TemporaryDirectory()
        let wide = [Rule(keys: "app/", directory: "d")]
        let narrow = [Rule(keys: "app/x/", directory: "d")]
        let stage = try FileContainerStage(directory, rules: wide)
        try stage.set("app/x/y", "told")
        stage.close()
        for (rules, expected) in [(narrow, ["y": "told"]), (wide, ["x/y": "told"])] {
            let next = try FileContainerStage(directory, rules: rules)
            #expect(next.values() == ["app/x/y": "told"])
            #expect(try files("d", in: directory) == expected)
            next.close()
        }
    }

    @Test func `two rules that swap their directories keep their values`() throws {
        let directory = try TemporaryDirectory()
        let stage = try FileContainerStage(
            directory,
            rules: [Rule(keys: "a/", directory: "d"), Rule(keys: "b/", directory: "e")]
        )
        let values = ["a/x": "of a", "b/x": "of b", "b/y": "of b"]
        for (key, value) in values { try stage.set(key, value) }
        stage.close()
        let next = try FileContainerStage(
            directory,
            rules: [Rule(keys: "a/", directory: "e"), Rule(keys: "b/", directory: "d")]
        )
        #expect(next.values() == values)
        #expect(try files("e", in: directory) == ["x": "of a"])
        #expect(try files("d", in: directory) == ["x": "of b", "y": "of b"])
        try next.set("a/y", "new")
        #expect(try files("e", in: directory) == ["x": "of a", "y": "new"])
    }

    @Test func `a key that no file can have keeps its value at a start that makes files`() throws {
        let directory = try TemporaryDirectory()
        let without = [Rule(keys: "b/", directory: "e")]
        let with = without + [Rule(keys: "a/", directory: "d")]
        let stage = try FileContainerStage(directory, rules: without)
        try stage.set("a/x", "old")
        try stage.set("a/y~", "a name that no file can have")
        stage.close()
        let values = ["a/x": "old", "a/y~": "a name that no file can have"]
        for _ in 0..<2 {
            let next = try FileContainerStage(directory, rules: with)
            #expect(next.values() == values)
            #expect(try files("d", in: directory) == ["x": "old"])
            next.close()
        }
        let last = try FileContainerStage(directory, rules: without)
        #expect(last.values() == values)
        #expect(try files("d", in: directory) == [:])
    }

    @Test func `a copy of the store removes no file of the one that it is a copy of`() throws {
        let directory = try TemporaryDirectory()
        let stage = try FileContainerStage(directory)
        try stage.set("app/a", "1")
        stage.close()
        let copy = try TemporaryDirectory()
        try copy.shell("cp -a '\(directory.path(of: "data"))' data")
        let other = try FileContainerStage(copy, rules: [Rule(keys: "b/", directory: "e")])
        #expect(other.values() == ["app/a": "1"])
        #expect(try files("d", in: directory) == ["a": "1"])
        other.close()
        let own = try FileContainerStage(directory, rules: [Rule(keys: "b/", directory: "e")])
        #expect(own.values() == ["app/a": "1"])
        #expect(try files("d", in: directory) == [:])
    }
}
