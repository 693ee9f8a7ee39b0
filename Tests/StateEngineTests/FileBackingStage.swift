import Glibc
import StateEngine
import StateTestSupport
import Testing

/// A keyspace over a directory of a test's own, and what is told of it.
final class FileStage {
    let directory: TemporaryDirectory
    let backing: FileBacking
    let keyspace: LocalKeyspace
    private let told = Observed<[(changes: [KeyspaceChange], cause: Cause)]>([])
    private var watch: (any KeyspaceWatch)?
    private let reported: Observed<[FileBacking.Unreadable]>

    init(_ directory: TemporaryDirectory? = nil, valueByteCount: Int = 1 << 20) throws {
        let directory = try directory ?? TemporaryDirectory()
        let reported = Observed<[FileBacking.Unreadable]>([])
        self.directory = directory
        self.reported = reported
        backing = FileBacking(
            directory: directory.path,
            valueByteCount: valueByteCount,
            onUnreadable: { file in reported.update { $0.append(file) } }
        )
        keyspace = try LocalKeyspace(backing: backing)
        let told = told
        let watch = keyspace.watch { event in
            guard case .commit(_, let changes, let cause) = event else { return }
            told.update { $0.append((changes, cause)) }
        }
        watch.include([.everything])
        self.watch = watch
    }

    deinit { keyspace.close() }

    func path(_ name: String) -> String { directory.path(of: name) }

    // MARK: Through the keyspace

    @discardableResult
    func set(_ key: String, _ value: String, ifRevision: Int64? = nil) throws -> Int64 {
        try keyspace.apply([.set(Key(key), Array(value.utf8), ifRevision: ifRevision)])
    }

    @discardableResult
    func delete(_ key: String) throws -> Int64 { try keyspace.apply([.delete(Key(key))]) }

    func value(_ key: String) throws -> String? {
        keyspace.entry(for: try Key(key)).map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// Every value by key.
    func values() -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: keyspace.entries(.everything, after: nil, limit: .max).map {
                ($0.key.description, String(decoding: $0.entry.value, as: UTF8.self))
            }
        )
    }

    // MARK: Beside it

    /// Runs a line of shell in the directory.
    func shell(_ line: String) throws {
        let result = try runCommand("/bin/sh", ["-ec", "cd '\(directory.path)'; \(line)"])
        try #require(result.exitCode == 0, "\(result)")
    }

    func file(_ name: String) throws -> String {
        String(decoding: try readFile(path(name)), as: UTF8.self)
    }

    func mode(_ name: String) -> mode_t {
        var status = stat()
        return lstat(path(name), &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// What is in the directory, hidden names left out.
    func names() throws -> [String] {
        try runCommand(
            "find",
            [directory.path, "-mindepth", "1", "-not", "-path", "*/.*"]
        )
        .lines.map { String($0.dropFirst(directory.path.count + 1)) }.sorted()
    }

    /// Files that are left under temporary names.
    func leftovers() throws -> [String] {
        try runCommand("find", [directory.path, "-name", ".stated-*"]).lines
    }

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

    /// Every value of `key` that was told, in order, with who made it.
    func history(_ key: String) -> [String] {
        told.current.flatMap { commit in
            commit.changes.filter { $0.key.description == key }.map { change in
                let value = change.value.map { String(decoding: $0, as: UTF8.self) } ?? "nil"
                return commit.cause.command == "file" ? "file: \(value)" : value
            }
        }
    }

    /// How many commits were told.
    var commitCount: Int { told.current.count }

    /// Waits until a file is reported as no value.
    func reports(_ path: String) -> Bool {
        reported.wait { $0.contains { $0.path == "'\(path)'" } }
    }
}
