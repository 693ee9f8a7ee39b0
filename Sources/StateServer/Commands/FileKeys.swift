import CLinux
import StateEngine
import StateWire

/// Keys of a command that are stored in files.
struct FileKeys {
    private(set) var keys: [[UInt8]] = []
    /// Whether any key may be in a file.
    private(set) var isAny = false

    var isEmpty: Bool { keys.isEmpty && !isAny }

    mutating func add(_ key: Bytes, in files: FileContainers) {
        if files.holds(key) { keys.append(Array(key)) }
    }

    mutating func add(_ other: FileKeys) {
        keys += other.keys
        isAny = isAny || other.isAny
    }

    /// Adds the keys that a command writes, or on which its writes depend.
    mutating func add(_ verb: Verb, _ arguments: Arguments, in files: FileContainers) {
        switch verb.name {
        case .stateDelete, .stateRevert, .flushall, .flushdb: isAny = true
        case .stateApply:
            guard case .stateApply(let steps)? = try? Command(verb, arguments) else { return }
            for step in steps {
                switch step {
                case .set(let key, _, _, _), .delete(let key, _), .check(let key, _):
                    add(key, in: files)
                case .undo: break
                }
            }
        default:
            for index in verb.keyPlaces(arguments) ?? [] { add(arguments[index], in: files) }
        }
    }

    /// Whether others may have changed these files before a time of the monotonic clock, in
    /// nanoseconds, without the daemon knowing yet.
    func mayHaveChanged(in files: FileContainers, before time: Int64) -> Bool {
        if isAny { return files.mayHaveChanged(before: time) }
        return keys.contains { key in
            key.withUnsafeBytes { files.mayHaveChanged($0, before: time) }
        }
    }
}

/// The files of a command's keys: the command waits until edits of them are known, at most a
/// second.
struct AwaitedFiles {
    /// A file that is edited forever must not make clients wait forever.
    private static let milliseconds: Int64 = 1_000

    let keys: FileKeys
    let files: FileContainers
    /// When the command came, on the monotonic clock: edits after that may come after it.
    let since = clinux_monotonic_nanoseconds()

    var isOverdue: Bool {
        clinux_monotonic_nanoseconds() - since >= AwaitedFiles.milliseconds * 1_000_000
    }

    var areKnown: Bool { isOverdue || !keys.mayHaveChanged(in: files, before: since) }
}

extension Connection {
    /// The keys of a command that writes, and are in files; those of the transaction for EXEC.
    func fileKeys(
        of verb: Verb,
        _ arguments: Arguments,
        _ files: FileContainers
    ) -> FileKeys {
        var keys = FileKeys()
        if let queued = session.transaction {
            guard verb.isExecution, queued.hasWrites else { return keys }
            keys.add(queued.files)
            for watched in session.watchedKeys {
                watched.key.withUnsafeBytes { keys.add($0, in: files) }
            }
        } else if verb.isWrite {
            keys.add(verb, arguments, in: files)
        }
        return keys
    }

    /// Whether a command must wait until edits of the files of its keys are known, so that it comes
    /// after them.
    func awaits(_ keys: FileKeys, _ files: FileContainers) -> Bool {
        guard !keys.isEmpty else {
            inbound.awaitedFiles = nil
            return false
        }
        let awaited = inbound.awaitedFiles ?? AwaitedFiles(keys: keys, files: files)
        // It may have waited for the maximum time.
        let isKnown =
            inbound.awaitedFiles == nil
            ? !keys.mayHaveChanged(in: files, before: awaited.since) : awaited.areKnown
        inbound.awaitedFiles = isKnown ? nil : awaited
        return !isKnown
    }
}
