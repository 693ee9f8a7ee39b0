import Glibc
import StateEngine
import StateSQLite
import StateServer

/// Values that the daemon itself sets at its start, before it serves.
///
/// What cannot be set is logged and stays as it was: the daemon then serves without it.
struct StartValues {
    private let keyspace: LocalKeyspace
    private let log: Log

    init(_ keyspace: LocalKeyspace, _ log: Log) { (self.keyspace, self.log) = (keyspace, log) }

    // MARK: Credentials

    /// Makes each credential of the daemon's unit a value below `prefix`, in one commit; keys
    /// without a credential stay.
    ///
    /// See `LoadCredential=` in systemd.exec(5). systemd allows 1 MiB in all.
    func setCredentials(_ prefix: String) {
        guard let directory = Environment["CREDENTIALS_DIRECTORY"] else {
            log.write(.warning, "no credential becomes a value: systemd gave this process none")
            return
        }
        do throws(StateError) {
            let found = try StartValues.files(in: directory)
            var values: [(key: Key, value: [UInt8])] = []
            for (name, bytes) in found { values.append((try Key(prefix + name), bytes)) }
            let count = try set(values, [])
            log.write(
                .info,
                "\(counted(found.count, "credential")) below \(prefix): \(count) set anew"
            )
        } catch {
            log.write(.error, "credentials are not set below \(prefix): \(error.message)")
        }
    }

    /// The regular files of a directory with their contents, by name.
    private static func files(
        in directory: String
    ) throws(StateError) -> [(name: String, bytes: [UInt8])] {
        guard let stream = opendir(directory) else {
            throw StateError(.storage, "\(directory) cannot be read: \(lastSystemError())")
        }
        defer { closedir(stream) }
        var found: [(name: String, bytes: [UInt8])] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard !name.hasPrefix(".") else { continue }
            found.append((name, try contents(of: "\(directory)/\(name)")))
        }
        return found.sorted { $0.name < $1.name }
    }

    private static func contents(of path: String) throws(StateError) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw StateError(.storage, "\(path) cannot be read: \(lastSystemError())")
        }
        defer { close(file) }
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(file, &room, room.count)
            guard count >= 0 else {
                throw StateError(.storage, "\(path) cannot be read: \(lastSystemError())")
            }
            if count == 0 { return bytes }
            bytes += room[..<count]
            guard bytes.count <= 1 << 20 else {
                throw StateError(.tooBig, "\(path) has more than 1 MiB")
            }
        }
    }

    // MARK: Early boot

    /// Which early store was adopted last, so that none is twice if this process is killed before it
    /// has removed it.
    private static let adopted = "handler:early"

    /// Sets what another daemon kept in `directory` before this store could be reached, in one
    /// commit, and then removes that store.
    func adopt(_ directory: String) {
        let endings = ["", "-wal", "-shm", "-mark", "-reserve"]
        let files = endings.map { "\(directory)/stated.db\($0)" }
        guard access(files[0], F_OK) == 0 else { return }
        do throws(StateError) {
            let early = try LocalKeyspace(backing: SQLiteBacking(directory: directory))
            let (name, values) = ("\(early.epoch)", StartValues.values(of: early))
            early.close()
            let count = isAdopted(name) ? 0 : try set(values, [(StartValues.adopted, name)])
            for file in files { unlink(file) }
            log.write(
                .info,
                "\(counted(values.count, "key")) of early boot in \(directory): \(count) set anew"
            )
        } catch {
            log.write(
                .error,
                "the values of early boot stay in \(directory), they are not set: \(error.message)"
            )
        }
    }

    private func isAdopted(_ epoch: String) -> Bool {
        keyspace.withCore { core in
            var receipt = core.makeReceipt()
            return core.metadataText(StartValues.adopted, &receipt) == epoch
        }
    }

    private static func values(of early: LocalKeyspace) -> [(key: Key, value: [UInt8])] {
        early.entries(.everything, after: nil, limit: .max).map { ($0.key, $0.entry.value) }
    }

    // MARK: Setting

    /// Sets those values that differ, and the metadata, in one commit; the values are then on stable
    /// storage.
    ///
    /// - Returns: How many differed.
    /// - Throws: the refusal of a rule or of the disk; nothing is set then.
    private func set(
        _ values: [(key: Key, value: [UInt8])],
        _ metadata: [(name: String, text: String)]
    ) throws(StateError) -> Int {
        let new = values.filter { keyspace.entry(for: $0.key)?.value != $0.value }
        guard !(new.isEmpty && metadata.isEmpty) else { return 0 }
        try keyspace.durably { (core) throws(StateError) in
            let cause = core.retainCause(.thisProcess)
            defer { core.release(cause) }
            var receipt = core.makeReceipt()
            core.begin(cause, at: LocalKeyspace.now())
            do throws(StateError) {
                for (key, value) in new {
                    try StartValues.set(key, to: value, in: core)
                }
                for (name, text) in metadata { try core.setMetadata(name, to: text) }
            } catch {
                core.rollBack()
                throw error
            }
            core.finish(&receipt)
        }
        return new.count
    }

    private static func set(
        _ key: Key,
        to value: [UInt8],
        in core: KeyspaceCore
    ) throws(StateError) {
        do throws(StateError) {
            try key.bytes.withBorrowed { (key) throws(StateError) in
                try value.withBorrowed { (value) throws(StateError) in
                    try core.set(key, to: value)
                }
            }
        } catch {
            guard error.code == .rejected else { throw error }
            // Its message has the value, which may be a secret.
            throw StateError(.rejected, "a rule refuses the value of key '\(key)'")
        }
    }
}
