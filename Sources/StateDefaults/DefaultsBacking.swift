import Foundation
import StateEngine

/// A suite of the user's defaults as a store: one default for each key.
///
/// A UTF-8 value is stored as a string, any other as data. A number or Boolean that another program
/// has set is read as a person would type it. Only the present values are kept: each start has
/// another epoch.
///
/// Stored properties are constant, and Foundation guards the defaults: the proof of `@unchecked
/// Sendable`.
final class DefaultsBacking: Backing, @unchecked Sendable {
    let isPersistent = true
    private let suite: String
    private let defaults: UserDefaults

    /// - Throws: ``StateError/Code/err`` for an invalid suite name.
    init(suite: String) throws(StateError) {
        guard let defaults = UserDefaults(suiteName: suite) else {
            throw StateError(.err, "'\(suite)' is not a valid name for a suite of defaults")
        }
        self.suite = suite
        self.defaults = defaults
    }

    func load(_ receive: (borrowing StoredChange) -> Void) -> LoadedStore {
        let domain = defaults.persistentDomain(forName: suite) ?? [:]
        var ordinal: Int32 = 0
        for (name, value) in domain.sorted(by: { $0.key < $1.key }) {
            guard let key = try? Key(name), let bytes = DefaultsBacking.bytes(of: value) else {
                continue
            }
            key.bytes.withUnsafeBytes { key in
                bytes.withUnsafeBytes { receive(.first(ordinal, key: key, value: $0)) }
            }
            ordinal += 1
        }
        return LoadedStore(epoch: .random(), revision: 1)
    }

    func commit(_ batch: borrowing CommitBatch) throws {
        batch.forEachChange { change in
            let name = String(decoding: change.key, as: UTF8.self)
            guard let value = change.value else { return defaults.removeObject(forKey: name) }
            if let text = String(validating: value, as: UTF8.self) {
                defaults.set(text, forKey: name)
            } else {
                defaults.set(Data(value), forKey: name)
            }
        }
        guard defaults.synchronize() else {
            throw StateError(
                .readOnly,
                "outcome unknown: the defaults of '\(suite)' could not be written"
            )
        }
    }

    /// Foundation keeps unwritten values in memory, as if they had been written.
    func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) -> [String: String] { [:] }

    func maintain() {}

    var needsMaintenance: Bool { false }

    func close() { defaults.synchronize() }

    /// A default as a person would type it; nil for a list or a dictionary, which cannot be a value
    /// here.
    private static func bytes(of value: Any) -> [UInt8]? {
        switch value {
        case let text as String: Array(text.utf8)
        case let data as Data: Array(data)
        case let flag as Bool: Array((flag ? "true" : "false").utf8)
        case let number as NSNumber: Array(number.stringValue.utf8)
        default: nil
        }
    }
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
