import Dispatch
import Foundation
import StateEngine

/// A suite of the user's defaults as a store: one default for each key.
///
/// An entry is the property list of its default. Only the present values are kept: each start has
/// another epoch. Other code may set defaults too, and on Linux Foundation reports none of it. So
/// the suite is compared with what is known before each commit, when a container is made, and ten
/// times a second.
///
/// What is known is under the lock, and only calls that ``Backing`` orders use the rest: the proof of
/// `@unchecked Sendable`.
final class DefaultsBacking: EditableBacking, @unchecked Sendable {
    let isPersistent = true
    let keysArePaths = false
    private let suite: DefaultsSuite
    /// What the keyspace has, or is about to adopt; the lock is held while the suite is used.
    private let known = StateLock<[String: PropertyList]>([:])
    /// How many commits in a row have found changes of others; only for commits.
    private var meetingCount = 0
    /// Set after the load, and ended by the close.
    private var timer: (any DispatchSourceTimer)?

    private static let pause = DispatchTimeInterval.milliseconds(100)

    /// - Throws: ``StateError/Code/invalidRequest`` for an invalid suite name.
    init(suite: String?) throws(StateError) { self.suite = try DefaultsSuite(suite) }

    var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.editing = self
        return capabilities
    }

    func load(_ receive: (borrowing StoredChange) -> Void) -> LoadedStore {
        let found = known.withLock { known in
            known = suite.read()
            return known
        }
        var ordinal: Int32 = 0
        for (name, value) in found.sorted(by: { $0.key < $1.key }) {
            guard let key = try? Key(name) else { continue }
            key.bytes.withUnsafeBytes { key in
                value.bytes.withUnsafeBytes { receive(.first(ordinal, key: key, value: $0)) }
            }
            ordinal += 1
        }
        return LoadedStore(epoch: .random(), revision: 1)
    }

    /// Sets the defaults, and makes Foundation write them.
    ///
    /// - Throws: ``EditedMeanwhile`` if others have set anything, and ``StateError/Code/conflict``
    ///   if they go on; ``StateError/Code/readOnly`` if they could not be written: the outcome is
    ///   unknown then.
    func commit(_ batch: borrowing CommitBatch) throws {
        var changes: [String: PropertyList?] = [:]
        try batch.forEachChange { change in
            let name = String(decoding: change.key, as: UTF8.self)
            changes[name] = .some(try change.value.map(DefaultsBacking.list))
        }
        try known.withLock { known in
            guard suite.read() == known else { throw meeting() }
            meetingCount = 0
            for (name, value) in changes { suite.set(value, for: name) }
            guard suite.synchronize() else {
                throw StateError(
                    .readOnly,
                    "outcome unknown: the defaults of '\(suite.name)' could not be written"
                )
            }
            for (name, value) in changes { known[name] = value }
        }
    }

    private static func list(_ bytes: Bytes) throws(StateError) -> PropertyList {
        if let list = PropertyList(entry: Array(bytes)) { return list }
        throw StateError(.err, "a default must be a property list: nothing was committed")
    }

    /// Others have changed the suite: the commit is repeated on top of that, 16 times at most.
    private func meeting() -> any Error {
        meetingCount += 1
        guard meetingCount > 16 else { return EditedMeanwhile() }
        meetingCount = 0
        return StateError(
            .conflict,
            "the defaults of '\(suite.name)' keep being changed by others: nothing was committed; "
                + "try again"
        )
    }

    /// Foundation keeps unwritten values in memory, as if they had been written; they are then
    /// adopted like those of others.
    func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) -> [String: String?] { [:] }

    func close() {
        timer?.cancel()
        timer = nil
        _ = suite.synchronize()
    }

    // MARK: What others set

    func validate(_ key: Bytes) throws(StateError) {}

    func watchOutside(_ wake: @escaping @Sendable () -> Void) {
        let new = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
        new.setEventHandler { [weak self] in
            guard let self, known.withLock({ $0 != suite.read() }) else { return }
            wake()
        }
        new.schedule(
            deadline: .now() + DefaultsBacking.pause,
            repeating: DefaultsBacking.pause,
            leeway: .milliseconds(20)
        )
        new.resume()
        timer = new
    }

    func takeOutsideChanges() -> [OutsideChange] {
        known.withLock { known in
            let before = known
            known = suite.read()
            return Set(before.keys).union(known.keys).compactMap { name in
                guard before[name] != known[name], let key = try? Key(name) else { return nil }
                return OutsideChange(
                    key: key.bytes,
                    value: known[name]?.bytes,
                    writer: Cause(uid: geteuid(), gid: getegid(), pid: 0, command: "defaults"),
                    time: Int64(Date().timeIntervalSince1970 * 1_000)
                )
            }
        }
    }
}

extension PropertyList {
    /// The bytes of its entry; none if it cannot be written, which no codec reads.
    fileprivate var bytes: [UInt8] { (try? entry()) ?? [] }
}

extension StoredChange {
    /// The change that makes an entry at revision 1.
    fileprivate static func first(_ ordinal: Int32, key: Bytes, value: Bytes) -> StoredChange {
        StoredChange(
            revision: 1,
            ordinal: ordinal,
            key: key,
            value: value,
            created: 1,
            owner: geteuid(),
            version: 1,
            time: 0,
            cause: Bytes(start: nil, count: 0),
            previousRevision: 0,
            previousOrdinal: 0
        )
    }
}
