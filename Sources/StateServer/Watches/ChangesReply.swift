import StateEngine
import StateWire

/// The commits of a reply to STATE.CHANGES: as many as fit, none of them split.
///
/// Only one thread may use it at a time.
struct ChangesReply: ~Copyable {
    /// Above this size, further commits go into the next reply.
    private static let byteCount = 1 << 20

    private let version: ProtocolVersion
    private let countLimit: Int
    /// The size limit of one commit, in bytes.
    private let byteLimit: Int
    private let includesPrevious: Bool

    private var bytes = ByteBuffer()
    private(set) var commitCount = 0
    /// The changes of the open commit.
    private var changes = ByteBuffer()
    private var changeCount = 0

    /// All commits up to here are in the reply, or have no matching change.
    private(set) var next: Int64
    /// Whether no further commit fits.
    private(set) var isFull = false

    init(
        after revision: Int64,
        _ options: ChangesRequest.Options,
        _ version: ProtocolVersion,
        byteLimit: Int
    ) {
        next = revision
        self.version = version
        self.byteLimit = byteLimit
        countLimit = options.count
        includesPrevious = options.includesPrevious
    }

    var isEmpty: Bool { commitCount == 0 }

    /// Its approximate memory.
    var footprint: Int { bytes.footprint + changes.footprint }

    /// Whether there is an open commit.
    var isOpen: Bool { changeCount > 0 }

    /// Adds a change to the open commit; if there is no room for it, the commit is dropped.
    ///
    /// - Throws: ``StateError/Code/tooBig``, if that commit alone exceeds the limit of a reply.
    mutating func add(
        _ key: Bytes,
        _ value: Bytes?,
        previous: Bytes?,
        at revision: Int64
    ) throws(StateError) {
        guard !isFull else { return }
        changeCount += 1
        changes.writeArray(includesPrevious ? 3 : 2)
        changes.writeBulk(key)
        changes.writeValue(value, version)
        if includesPrevious { changes.writeValue(previous, version) }
        if !isEmpty, bytes.count + changes.count > ChangesReply.byteCount {
            isFull = true
        } else if changes.count > byteLimit {
            throw StateError(
                .tooBig,
                "the commit at revision \(revision) has more than \(byteLimit) bytes, the limit of "
                    + "a reply; ask for fewer keys at once"
            )
        }
    }

    /// Ends the open commit, if there is one.
    mutating func endCommit(_ revision: Int64) {
        guard !isFull, isOpen else { return }
        bytes.writeArray(2)
        bytes.writeInteger(revision)
        bytes.writeArray(changeCount)
        bytes.append(changes.bytes)
        changes.removeAll()
        changes.shrink(to: 64 << 10)
        changeCount = 0
        commitCount += 1
        next = revision
        isFull = commitCount >= countLimit
    }

    /// Records that everything up to `revision` was visited, unless a commit did not fit.
    mutating func advance(to revision: Int64) {
        if !isFull, !isOpen { next = max(next, revision) }
    }

    /// Writes the reply, without the open commit.
    func write(to output: inout ByteBuffer, epoch: Epoch?) {
        output.writeArray(epoch == nil ? 3 : 4)
        output.writeBulk("ok")
        output.writeInteger(next)
        output.writeArray(commitCount)
        output.append(bytes.bytes)
        if let epoch { output.writeBulk(epoch.description) }
    }
}
