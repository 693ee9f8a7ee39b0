package import StateModel

extension Command {
    /// A step of the link that brings the changes of a cluster, see `docs/cluster.md`.
    package enum MirrorStep {
        /// The connection is the link from now on, instead of any other.
        case begin
        /// A commit of the cluster, at a revision of its own, that follows on `after`.
        ///
        /// Without changes only the position moves on. The stamp is what the link compares when it
        /// connects again: it must find it in the same history.
        case commit(MirrorCommit)
        /// Everything that the cluster had `age` milliseconds ago is here, if the position is
        /// `revision`.
        case beat(revision: Int64, age: Int64, refusedCount: Int64)
        /// The cluster cannot be reached.
        case away(reason: Bytes)
        /// What is here must be compared with all that the cluster has: rows, in order of their
        /// keys, then ``synced(revision:stamp:)``.
        case resync(history: Bytes, reason: Bytes)
        case rows([MirrorChange])
        case synced(revision: Int64, stamp: Bytes)
        /// From now on the link sends changes to the cluster, of so many operations and bytes in one
        /// transaction; of what an earlier link had sent, the cluster has only what has come.
        case ready(operationCount: Int, byteCount: Int)
        /// The cluster takes no changes of this machine: who asks for one gets this error.
        case refusing(code: String, reason: Bytes)
        /// The cluster has refused a batch of changes.
        case failed(number: Int64, code: String, reason: Bytes)
    }

    /// A commit of a cluster.
    package struct MirrorCommit {
        package let after: Int64
        package let revision: Int64
        package let stamp: Bytes
        /// Nil if it is not signed.
        package let writers: MirrorWriters?
        package let changes: [MirrorChange]
    }

    /// Who has written a commit of a cluster: those of one machine, in one batch.
    package struct MirrorWriters {
        package let node: Bytes
        package let number: Int64
        package let lines: [Line]

        /// The keys that one has changed, or `*`.
        package struct Line {
            package let cause: String
            package let keys: [[UInt8]]
        }

        /// - Returns: Nil for what is no signature.
        init?(_ node: Bytes, _ text: Bytes) {
            let lines = text.split(separator: 0x1E, omittingEmptySubsequences: false)
            guard let first = lines.first,
                let number = Int64(String(decoding: first, as: UTF8.self))
            else { return nil }
            (self.node, self.number) = (node, number)
            self.lines = lines.dropFirst().map { line in
                let parts = line.split(separator: UInt8(ascii: "\t"))
                return Line(
                    cause: parts.first.map { String(decoding: $0, as: UTF8.self) } ?? "",
                    keys: parts.dropFirst().map { Array($0) }
                )
            }
        }
    }

    /// A change of a key of a cluster.
    package struct MirrorChange {
        package let key: Bytes
        /// Nil if it was deleted.
        package let value: Bytes?
        /// How often the key was set since it was created; 0 if it was deleted.
        package let version: Int64
        /// When it ends by itself, in milliseconds since 1970; nil if it does not.
        package let expires: Int64?
        /// Whether it must follow on the version that is here.
        package let follows: Bool
    }
}

/// The longest stamp and the longest name of a history, in bytes.
private let stampByteCount = 256

/// Parses the arguments of STATE.MIRROR.
func readMirror(_ arguments: Arguments) throws(StateError) -> Command {
    let count = arguments.count
    if arguments.isWord(0, "COMMIT"), count >= 4 {
        let after = try foreign(arguments[1], from: 0, "revision")
        let next = try foreign(arguments[2], from: 0, "revision")
        let stamp = try stamp(arguments[3])
        let isSigned = count >= 7 && arguments.isWord(4, "BY")
        let changes = try changes(arguments.dropFirst(isSigned ? 7 : 4))
        let commit = Command.MirrorCommit(
            after: after,
            revision: next,
            stamp: stamp,
            writers: isSigned ? Command.MirrorWriters(arguments[5], arguments[6]) : nil,
            changes: changes
        )
        return .stateMirror(.commit(commit))
    }
    if arguments.isWord(0, "BEAT"), count == 4 {
        let revision = try foreign(arguments[1], from: 0, "revision")
        let age = try foreign(arguments[2], from: 0, "the age")
        let refusedCount = try foreign(arguments[3], from: 0, "the number of keys")
        return .stateMirror(.beat(revision: revision, age: age, refusedCount: refusedCount))
    }
    if arguments.isWord(0, "ROWS"), count > 1, (count - 1) % 3 == 0 {
        return .stateMirror(.rows(try rows(arguments.dropFirst(1))))
    }
    if arguments.isWord(0, "AWAY"), count == 2 { return .stateMirror(.away(reason: arguments[1])) }
    if arguments.isWord(0, "RESYNC"), count == 3 {
        let history = try stamp(arguments[1])
        return .stateMirror(.resync(history: history, reason: arguments[2]))
    }
    if arguments.isWord(0, "SYNCED"), count == 3 {
        let revision = try foreign(arguments[1], from: 0, "revision")
        return .stateMirror(.synced(revision: revision, stamp: try stamp(arguments[2])))
    }
    if arguments.isWord(0, "READY"), count == 3 {
        let operations = try foreign(arguments[1], from: 4, "the number of operations")
        let bytes = try foreign(arguments[2], from: 1, "the number of bytes")
        return .stateMirror(.ready(operationCount: Int(operations), byteCount: Int(bytes)))
    }
    if arguments.isWord(0, "REFUSING"), count == 3 {
        return .stateMirror(
            .refusing(code: try stamp(arguments[1]).text, reason: arguments[2])
        )
    }
    if arguments.isWord(0, "FAILED"), count == 4 {
        let number = try foreign(arguments[1], from: 0, "the number")
        let code = try stamp(arguments[2]).text
        return .stateMirror(.failed(number: number, code: code, reason: arguments[3]))
    }
    if arguments.isWord(0, "BEGIN"), count == 1 { return .stateMirror(.begin) }
    throw syntaxError(
        "STATE.MIRROR takes BEGIN, COMMIT after revision stamp [BY node text] [change…], BEAT revision "
            + "age refused, AWAY reason, RESYNC history reason, ROWS key version value…, SYNCED revision "
            + "stamp, READY operations bytes, REFUSING code reason, or FAILED "
            + "batch code reason"
    )
}

private func changes(_ arguments: Arguments) throws(StateError) -> [Command.MirrorChange] {
    var changes: [Command.MirrorChange] = []
    var cursor = OptionCursor(arguments)
    while !cursor.isAtEnd {
        if let name = cursor.value(of: "DELETE") {
            changes.append(
                .init(key: try key(name), value: nil, version: 0, expires: nil, follows: true)
            )
            continue
        }
        let follows = cursor.take("SET")
        guard follows || cursor.take("REPLACE"), arguments.count - cursor.index >= 3 else {
            throw syntaxError("in change \(changes.count + 1) of STATE.MIRROR COMMIT")
        }
        changes.append(try set(&cursor, follows: follows))
    }
    return changes
}

/// Reads `key version value`; behind the version may be a colon and when the key ends by itself.
private func set(
    _ cursor: inout OptionCursor,
    follows: Bool
) throws(StateError) -> Command.MirrorChange {
    let name = try key(cursor.takeNext())
    let numbers = cursor.takeNext()
    let end = numbers.firstIndex(of: UInt8(ascii: ":")) ?? numbers.count
    let version = try foreign(Bytes(rebasing: numbers[..<end]), from: 1, "the version")
    let expires =
        end < numbers.count
        ? try foreign(Bytes(rebasing: numbers[(end + 1)...]), from: 0, "the time") : nil
    return .init(
        key: name,
        value: cursor.takeNext(),
        version: version,
        expires: expires,
        follows: follows
    )
}

private func rows(_ arguments: Arguments) throws(StateError) -> [Command.MirrorChange] {
    var rows: [Command.MirrorChange] = []
    var cursor = OptionCursor(arguments)
    while !cursor.isAtEnd { rows.append(try set(&cursor, follows: false)) }
    return rows
}

/// A line of the position, which is stored as text.
private func stamp(_ bytes: Bytes) throws(StateError) -> Bytes {
    let isText = bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    guard isText, bytes.count <= stampByteCount else {
        throw StateError(
            .err,
            "\(StateError.quoted(bytes)) is not a stamp: at most \(stampByteCount) printable bytes"
        )
    }
    return bytes
}

/// A number of the cluster's, which must be one that a row can have: others would damage the store.
private func foreign(_ bytes: Bytes, from least: Int64, _ name: String) throws(StateError) -> Int64
{
    let number = try count(bytes, from: least, name)
    guard number <= foreignLimit else {
        throw StateError(.err, "\(name) \(number) is larger than \(foreignLimit)")
    }
    return number
}

private let foreignLimit: Int64 = 1 << 61

/// Parses the arguments of STATE.SYNC: whether it is about storage alone.
func readSync(_ arguments: Arguments) throws(StateError) -> Bool {
    if arguments.count == 0 { return false }
    guard arguments.count == 1, arguments.isWord(0, "LOCAL") else {
        throw syntaxError("STATE.SYNC takes nothing, or LOCAL")
    }
    return true
}
