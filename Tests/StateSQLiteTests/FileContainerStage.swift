import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport
import Testing

/// A keyspace on SQLite whose keys below `app/` live in files.
final class FileContainerStage {
    let directory: TemporaryDirectory
    let keyspace: LocalKeyspace
    let files: FileContainers
    let notices = Observed<[String]>([])
    private let told = Observed<[(changes: [KeyspaceChange], cause: Cause)]>([])
    private var watch: (any KeyspaceWatch)?
    private var isClosed = false

    static let rules = [FileRuleText(keys: "app/", directory: "d")]

    /// A rule with a directory below that of the test; nil for one that says another backing.
    struct FileRuleText {
        var keys: Pattern
        var directory: String?
    }

    init(
        _ directory: TemporaryDirectory? = nil,
        rules: [FileRuleText] = FileContainerStage.rules,
        limits: Limits = Limits(),
        log: Observed<FaultyFiles?>? = nil,
        onStep: (@Sendable (Int) -> Void)? = nil
    ) throws {
        let directory = try directory ?? TemporaryDirectory()
        self.directory = directory
        for name in rules.compactMap(\.directory) { mkdir(directory.path(of: name), 0o755) }
        let notices = notices
        let made = FileContainers(
            rules.map { rule in
                FileRule(
                    keys: rule.keys,
                    directory: rule.directory.map { directory.path(of: $0) }
                )
            },
            limits: limits,
            notice: { notice in notices.update { $0.append(notice) } }
        )
        files = try #require(made)
        if let onStep { files.onStep = onStep }
        let location = StoreLocation(directory: directory.path(of: "data"))
        var options = SQLiteBacking.Options()
        // What is refused stays so for as long as a test takes.
        options.log.patience = 0
        keyspace = try LocalKeyspace(
            backing: SQLiteBacking(location, log: location.logDirectory, options) {
                (path) throws(LogFileFailure) in
                let files = FaultyFiles(try LogDirectory(path))
                log?.update { $0 = files }
                return files
            }
        )
        let told = told
        watch = keyspace.watch { event in
            guard case .commit(_, let changes, let cause) = event else { return }
            told.update { $0.append((changes, cause)) }
        }
        watch?.include([.everything])
        do {
            try keyspace.attach(files)
        } catch {
            isClosed = true
            keyspace.close()
            throw error
        }
    }

    deinit { close() }

    func close() {
        if !isClosed { keyspace.close() }
        isClosed = true
    }

    func path(_ name: String) -> String { directory.path(of: "d/\(name)") }

    // MARK: Through the keyspace

    @discardableResult
    func set(_ key: String, _ value: String, ifRevision: Int64? = nil) throws -> Int64 {
        try keyspace.apply([.set(Key(key), Array(value.utf8), ifRevision: ifRevision)])
    }

    @discardableResult
    func delete(_ key: String) throws -> Int64 { try keyspace.apply([.delete(Key(key))]) }

    /// Every value by key.
    func values() -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: keyspace.entries(.everything, after: nil, limit: .max).map {
                ($0.key.description, String(decoding: $0.entry.value, as: UTF8.self))
            }
        )
    }

    // MARK: Beside it

    /// Runs a line of shell in the directory of the files.
    func shell(_ line: String) throws { try directory.shell("cd d; \(line)") }

    /// The values that the files hold, by key.
    func fileValues() throws -> [String: String] { try directory.fileValues() }

    /// Waits until a commit has been told that changes `key` to `value` and has the cause `file`.
    func adopts(_ key: String, _ value: String?) -> Bool {
        told.wait { commits in
            commits.contains { commit in
                commit.cause.command == "file"
                    && commit.changes.contains {
                        $0.key.description == key
                            && $0.value.map { String(decoding: $0, as: UTF8.self) } == value
                    }
            }
        }
    }

    /// Waits until the last value of `key` that was told is `value`.
    func hears(_ key: String, _ value: String?) -> Bool {
        told.wait { commits in
            let last = commits.lazy.flatMap(\.changes).last { $0.key.description == key }
            return last != nil
                && last?.value.map { String(decoding: $0, as: UTF8.self) } == value
        }
    }

    /// How many changes of `key` were told.
    func changeCount(_ key: String) -> Int {
        told.current.lazy.flatMap(\.changes).count { $0.key.description == key }
    }

    /// How many commits were told that others made to files.
    var editCount: Int { told.current.count { $0.cause.command == "file" } }

    /// Waits until something is noticed.
    func notices(_ text: String) -> Bool {
        notices.wait { $0.contains { $0.contains(text) } }
    }
}

extension TemporaryDirectory {
    func shell(_ line: String) throws {
        let result = try runCommand("/bin/sh", ["-ec", "cd '\(path)'; \(line)"])
        try #require(result.exitCode == 0, "\(result)")
    }

    /// What the files below `d` hold, by the keys of a container of `app/`.
    func fileValues() throws -> [String: String] {
        let names = try runCommand(
            "find",
            [path(of: "d"), "-type", "f", "-not", "-path", "*/.*", "-not", "-name", "*~"]
        )
        .lines
        return Dictionary(
            uniqueKeysWithValues: try names.map { name in
                (
                    "app/" + name.dropFirst(path(of: "d").utf8.count + 1),
                    String(decoding: try readFile(name), as: UTF8.self)
                )
            }
        )
    }
}
