import CLinux
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
            log.write(
                .warning,
                .credentialsNotSet,
                "no credential becomes a value: systemd gave this process none"
            )
            return
        }
        do throws(StateError) {
            let found = try StartValues.files(in: directory)
            var values: [Value] = []
            for (name, bytes) in found {
                values.append(Value(key: try Key(prefix + name), bytes: bytes, owner: geteuid()))
            }
            let count = try set(values, [])
            log.write(
                .info,
                .credentialsSet,
                "\(counted(found.count, "credential")) below \(prefix): \(count) set anew"
            )
        } catch {
            log.write(
                .error,
                .credentialsNotSet,
                "credentials are not set below \(prefix): \(error.message)"
            )
        }
    }

    /// The files of a directory with their contents, by name.
    private static func files(
        in directory: String
    ) throws(StateError) -> [(name: String, bytes: [UInt8])] {
        var found: [(name: String, bytes: [UInt8])] = []
        for name in try ConfigurationLayers.names(in: directory).sorted() {
            found.append((name, try ConfigurationFile.bytes("\(directory)/\(name)")))
        }
        return found
    }

    // MARK: Early boot

    /// Which early store was adopted last, so that none is twice if this process is killed before it
    /// has removed it.
    private static let adopted = "handler:early"

    /// Sets what another daemon kept in `directory` before this store could be reached, in one
    /// commit, and then removes that store.
    func adopt(_ directory: String) {
        let store = StoreLocation(directory: directory)
        // An adoption that was broken off while it removed the store.
        if access(store.adopted, F_OK) == 0 { store.removeAdopted() }
        guard access(store.database, F_OK) == 0 else { return }
        do throws(StateError) {
            let early = try LocalKeyspace(backing: SQLiteBacking(directory: directory))
            let (name, values) = ("\(early.epoch)", StartValues.values(of: early))
            early.close()
            let count = isAdopted(name) ? 0 : try set(values, [(StartValues.adopted, name)])
            // Order matters: from here on, nobody takes it for a store.
            rename(store.database, store.adopted)
            store.removeAdopted()
            log.write(
                .info,
                .earlySet,
                "\(counted(values.count, "key")) of early boot in \(directory): \(count) set anew"
            )
        } catch {
            log.write(
                .error,
                .earlyNotSet,
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

    /// Its values, but for those that were to live as long as a client: it may be gone.
    private static func values(of early: LocalKeyspace) -> [Value] {
        early.withCore { core in
            var values: [Value] = []
            core.forEachDurable(PatternSet([.everything]), after: nil) { record in
                let end = record.storedExpiry
                let isHeld = end.map { Holder(stored: $0) != nil } ?? false
                guard !isHeld, !core.isDue(record), let bytes = record.value else { return true }
                values.append(
                    Value(
                        key: Key(verified: record.key),
                        bytes: Array(bytes),
                        owner: record.owner,
                        expiry: end.map { .at($0) } ?? .never
                    )
                )
                return true
            }
            return values
        }
    }

    // MARK: Setting

    private struct Value {
        let key: Key
        let bytes: [UInt8]
        /// Whose it is if the key is absent.
        let owner: UInt32
        var expiry = Expiry.ruled

        /// Whether it is more than the present value, which it may be with another time to end.
        func differs(from present: [UInt8]?) -> Bool {
            if case .at = expiry { return true }
            return present != bytes
        }
    }

    /// Sets those values that differ, and the metadata, in one commit; the values are then on stable
    /// storage.
    ///
    /// - Returns: How many differed.
    /// - Throws: the refusal of a rule or of the disk; nothing is set then.
    private func set(
        _ values: [Value],
        _ metadata: [(name: String, text: String)]
    ) throws(StateError) -> Int {
        let new = values.filter { $0.differs(from: keyspace.entry(for: $0.key)?.value) }
        guard !(new.isEmpty && metadata.isEmpty) else { return 0 }
        try keyspace.durably { (core) throws(StateError) in
            let cause = core.retainCause(.thisProcess)
            defer { core.release(cause) }
            var receipt = core.makeReceipt()
            core.begin(cause, at: LocalKeyspace.now())
            do throws(StateError) {
                for value in new { try StartValues.set(value, in: core) }
                for (name, text) in metadata { try core.setMetadata(name, to: text) }
            } catch {
                core.rollBack()
                throw error
            }
            core.finish(&receipt)
        }
        return new.count
    }

    private static func set(_ new: Value, in core: KeyspaceCore) throws(StateError) {
        do throws(StateError) {
            try new.key.bytes.withBorrowed { (key) throws(StateError) in
                try new.bytes.withBorrowed { (value) throws(StateError) in
                    try core.set(key, to: value, ownedBy: new.owner, expiry: new.expiry)
                }
            }
        } catch {
            guard error.code == .rejected else { throw error }
            // Its message has the value, which may be a secret.
            throw StateError(.rejected, "a rule refuses the value of key '\(new.key)'")
        }
    }
}

extension StoreLocation {
    /// The name of the database while its store is removed.
    fileprivate var adopted: String { database + ".adopted" }

    /// Removes the store, the renamed database last.
    fileprivate func removeAdopted() {
        _ = clinux_remove_directory(AT_FDCWD, logDirectory)
        for file in [log, logIndex, bootMark, adopted] { unlink(file) }
    }
}
