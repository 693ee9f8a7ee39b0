import StateEngine
import StateWire

/// The commits that a reply to STATE.CHANGES tells: as many as fit, none of them split.
///
/// One thread at a time.
struct ChangesReply: ~Copyable {
    /// From here on the next commit is left for the next reply.
    private static let byteCount = 1 << 20

    private let version: ProtocolVersion
    private let countLimit: Int
    /// What one commit may be at most, in bytes.
    private let byteLimit: Int
    private let includesPrevious: Bool

    private var bytes = ByteBuffer()
    private(set) var commitCount = 0
    /// The changes of the commit that is being added.
    private var changes = ByteBuffer()
    private var changeCount = 0

    /// All commits up to here are told, or there was nothing to tell of them.
    private(set) var next: Int64
    /// No further commit fits.
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

    /// About how much memory it takes.
    var footprint: Int { bytes.footprint + changes.footprint }

    /// Whether a commit is begun and not ended.
    var isOpen: Bool { changeCount > 0 }

    /// Adds a change to the commit at hand; where there is no room for it, the commit is dropped.
    ///
    /// - Throws: ``StateError/Code/tooBig``, where that commit alone is more than a reply may be.
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
                "what the commit at revision \(revision) changes is more than \(byteLimit) bytes; "
                    + "ask for fewer keys at once"
            )
        }
    }

    /// Ends the commit at hand, where there is one.
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

    /// Notes that everything up to `revision` was looked at, where nothing was left out.
    mutating func advance(to revision: Int64) {
        if !isFull, !isOpen { next = max(next, revision) }
    }

    /// Writes the reply; a commit that is not ended is left out.
    func write(to output: inout ByteBuffer, epoch: Epoch?) {
        output.writeArray(epoch == nil ? 3 : 4)
        output.writeBulk("ok")
        output.writeInteger(next)
        output.writeArray(commitCount)
        output.append(bytes.bytes)
        if let epoch { output.writeBulk(epoch.description) }
    }
}
