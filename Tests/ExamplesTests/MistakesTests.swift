import Glibc
import StateTestSupport
import Testing

/// The programs of docs/mistakes.md: the mistakes have the messages that the page shows, and what to
/// write instead compiles.
struct MistakesTests {
    /// One section of the page.
    struct Mistake: Sendable, CustomStringConvertible {
        var description = ""
        var wrong = ""
        var message = ""
        var right = ""

        var isFoundAtRunTime: Bool { message.hasPrefix("Fatal error") }
    }

    private static let page: [Mistake] = {
        var mistakes: [Mistake] = []
        var block: (language: Substring, text: String)?
        for line in documentation("docs/mistakes.md").split(
            separator: "\n",
            omittingEmptySubsequences: false
        ) {
            if line.hasPrefix("## ") {
                mistakes.append(Mistake(description: String(line.dropFirst(3))))
            } else if let ended = block, line == "```" {
                block = nil
                switch (ended.language, mistakes[mistakes.count - 1].wrong.isEmpty) {
                case ("swift", true): mistakes[mistakes.count - 1].wrong = ended.text
                case ("swift", false): mistakes[mistakes.count - 1].right = ended.text
                default: mistakes[mistakes.count - 1].message = String(ended.text.dropLast())
                }
            } else if line.hasPrefix("```") {
                block = (line.dropFirst(3), "")
            } else {
                block?.text += line + "\n"
            }
        }
        return mistakes
    }()

    @Test func `the page has twelve mistakes`() {
        #expect(Self.page.count == 12)
        #expect(Self.page.allSatisfy { !$0.wrong.isEmpty && !$0.message.isEmpty })
    }

    @Test(arguments: page) func `what to write instead compiles`(mistake: Mistake) throws {
        let result = try compile(mistake.right, ["-typecheck"])
        #expect(result.exitCode == 0, "\(result)")
    }

    @Test(arguments: page.filter { !$0.isFoundAtRunTime })
    func `the compiler says what the page shows`(mistake: Mistake) throws {
        let result = try compile(mistake.wrong, ["-typecheck", "-warnings-as-errors"])
        #expect(result.exitCode != 0)
        #expect(result.errorText.contains(mistake.message), "\(result)")
    }

    @Test(arguments: page.filter { $0.isFoundAtRunTime })
    func `the program ends with what the page shows`(mistake: Mistake) throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let program = "\(directory.path)/program"
        #if TSAN
        let sanitizing = ["-sanitize=thread"]
        #else
        let sanitizing: [String] = []
        #endif
        let result = try compile(mistake.wrong, ["-o", program] + sanitizing + objects())
        try #require(result.exitCode == 0, "\(result)")
        let run = try runCommand(program, [])
        #expect(run.exitCode != 0)
        #expect(run.errorText.contains(mistake.message), "\(run)")
    }
}

private func documentation(_ name: String) -> String {
    let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    return text(of: "/\(root)/\(name)")
}

private func text(of path: String) -> String {
    guard let file = fopen(path, "r") else { return "" }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while case let count = fread(&chunk, 1, chunk.count, file), count > 0 {
        bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// Compiles a program against the modules that were built with the tests.
private func compile(_ source: String, _ arguments: [String]) throws -> CommandResult {
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = try directory.write(source, to: "main.swift")
    let built = buildDirectory()
    return try runCommand(
        try #require(compiler()),
        [
            "-swift-version", "6", "-I", "\(built)/Modules", "-module-cache-path",
            "\(directory.path)/modules", "-Xcc",
            "-fmodule-map-file=\(built)/CLinux.build/module.modulemap", path,
        ] + arguments
    )
}

/// The compiler of the runtime that this process has loaded.
private func compiler() -> String? {
    let maps = text(of: "/proc/self/maps").split(separator: "\n")
    let library = maps.first { $0.hasSuffix("/usr/lib/swift/linux/libswiftCore.so") }
    let path = library.flatMap { line in line.firstIndex(of: "/").map { line[$0...] } }
    return path.map { "\($0.dropLast("lib/swift/linux/libswiftCore.so".count))bin/swiftc" }
}

private func buildDirectory() -> String {
    let program = builtProgram("stated")
    return String(program[..<(program.lastIndex(of: "/") ?? program.startIndex)])
}

/// The object files of the modules that the programs import, as the tests are linked with them: the
/// build directory also has those of sources that are gone.
private func objects() -> [String] {
    let modules = [
        "CLinux", "StatePlatform", "StateSystem", "StateModel", "StateJSON", "StateEngine",
        "StateContainers", "StateStore",
    ]
    let linked = text(of: "\(buildDirectory())/statedPackageTests.product/Objects.LinkFileList")
    return linked.split(separator: "\n").map { $0.trimmingQuotes }.filter { object in
        modules.contains { object.contains("/\($0).build/") }
    }
}

extension Substring {
    fileprivate var trimmingQuotes: String {
        String(drop(while: { $0 == "'" }).prefix { $0 != "'" })
    }
}
