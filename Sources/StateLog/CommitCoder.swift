package import StateEngine
package import StateModel
import StateSystem

/// What a commit is known by besides its changes; later formats may have more kinds, which older
/// programs skip.
package struct CommitAttribute: Hashable, Sendable {
    package var kind: UInt64
    package var value: [UInt8]

    package init(kind: UInt64, value: [UInt8]) { (self.kind, self.value) = (kind, value) }
}

/// What a log knows of a change besides the change itself.
package struct ChangeLink: Hashable, Sendable {
    /// Whether the change that it supersedes is a delete.
    package var isAfterDelete = false
    /// What it supersedes, because the segment with that change may be dropped sooner; never a delete.
    package var carried: PastChange?
    /// The checksum of the row; 0 while it is written.
    package var checksum: UInt32 = 0

    package init() {}
}

/// The contents of a frame of commits.
///
/// ```
/// 1  a commit: revision, less that of the commit before it; time, less that of the frame; cause;
///    attributes, each a kind and bytes, after their number
/// 2  a change of that commit: flags, ordinal, key, value, revision less that of its creation, owner,
///    version, expiry less the time, what it supersedes, CRC-32C of the row, a carried version
/// 3  metadata of that commit: name, and the text if it was not removed
/// ```
///
/// Numbers have seven bits in a byte, texts begin with their length.
package struct CommitCoder {
    private var coded = LogWriterBytes()
    private var summary = CodedCommits([])
    package let frameTime: Int64
    private var revision: Int64 = 0
    private var time: Int64 = 0
    private var ordinal: Int32 = -1

    enum Tag: UInt8 {
        case commit = 1
        case change, metadata
    }

    struct Flags: OptionSet {
        let rawValue: UInt8
        static let hasValue = Flags(rawValue: 1)
        static let expires = Flags(rawValue: 2)
        static let supersedes = Flags(rawValue: 4)
        static let isAfterDelete = Flags(rawValue: 8)
        static let carries = Flags(rawValue: 16)
        /// The change has a cause of its own.
        static let hasCause = Flags(rawValue: 32)
        /// The change has a time of its own.
        static let hasTime = Flags(rawValue: 64)
    }

    /// Begins a frame.
    package init(at frameTime: Int64) { self.frameTime = frameTime }

    package var commits: CodedCommits {
        var commits = summary
        commits.bytes = coded.bytes
        return commits
    }

    /// Bytes so far.
    package var byteCount: Int { coded.count }

    /// Begins a commit.
    package mutating func begin(
        _ revision: Int64,
        at time: Int64,
        cause: Bytes,
        _ attributes: [CommitAttribute] = []
    ) {
        coded.append(Tag.commit.rawValue)
        coded.append(signed: revision &- self.revision)
        coded.append(signed: time &- frameTime)
        coded.append(text: cause)
        coded.append(attributes.count)
        for attribute in attributes {
            coded.append(attribute.kind)
            attribute.value.withUnsafeBytes { coded.append(text: $0) }
        }
        (self.revision, self.time, ordinal) = (revision, time, -1)
        summary.note(revision)
    }

    /// Adds a change to the commit that was begun last.
    ///
    /// - Parameters:
    ///   - change: The change, of that commit's revision.
    ///   - link: What is known of what it supersedes.
    ///   - cause: That of the commit.
    package mutating func append(
        _ change: borrowing StoredChange,
        _ link: ChangeLink = ChangeLink(),
        cause: Bytes
    ) {
        var flags: Flags = []
        if change.value != nil { flags.insert(.hasValue) }
        if change.expires != nil { flags.insert(.expires) }
        if change.previousRevision > 0 { flags.insert(.supersedes) }
        if link.isAfterDelete { flags.insert(.isAfterDelete) }
        if link.carried != nil { flags.insert(.carries) }
        if !change.cause.isEqual(to: cause) { flags.insert(.hasCause) }
        if change.time != time { flags.insert(.hasTime) }
        summary.changeCount += 1
        coded.append(Tag.change.rawValue)
        coded.append(flags.rawValue)
        coded.append(signed: Int64(change.ordinal) - Int64(ordinal))
        coded.append(text: change.key)
        if let value = change.value { coded.append(text: value) }
        coded.append(signed: revision &- change.created)
        coded.append(UInt64(change.owner))
        coded.append(signed: change.version)
        if flags.contains(.hasCause) { coded.append(text: change.cause) }
        if flags.contains(.hasTime) { coded.append(signed: change.time &- time) }
        if let expires = change.expires { coded.append(signed: expires &- time) }
        if flags.contains(.supersedes) {
            coded.append(signed: revision &- change.previousRevision)
            coded.append(signed: Int64(change.previousOrdinal))
        }
        coded.append(fixed: CommitCoder.checksum(of: change))
        if let carried = link.carried { append(carried) }
        ordinal = change.ordinal
    }

    private mutating func append(_ carried: PastChange) {
        coded.append(signed: revision &- carried.place.revision)
        coded.append(signed: Int64(carried.place.ordinal))
        coded.append(signed: carried.place.revision &- carried.created)
        coded.append(UInt64(carried.owner))
        coded.append(signed: carried.version)
        coded.append(signed: carried.time &- time)
        coded.append(carried.expires == nil ? 0 : 1)
        if let expires = carried.expires { coded.append(signed: expires &- carried.time) }
        carried.cause.withUnsafeBytes { coded.append(text: $0) }
        (carried.value ?? []).withUnsafeBytes { coded.append(text: $0) }
    }

    /// Adds metadata to the commit that was begun last; nil removes it.
    package mutating func append(metadata name: String, _ text: String?) {
        coded.append(Tag.metadata.rawValue)
        Array(name.utf8).withUnsafeBytes { coded.append(text: $0) }
        coded.append(text == nil ? 0 : 1)
        if let text { Array(text.utf8).withUnsafeBytes { coded.append(text: $0) } }
    }

    /// The checksum that the row of a change has wherever it is kept; it does not cover what the change
    /// supersedes.
    package static func checksum(of change: borrowing StoredChange) -> UInt32 {
        let lengths =
            UInt64(UInt32(truncatingIfNeeded: change.key.count)) << 32
            | UInt64(UInt32(truncatingIfNeeded: change.cause.count))
        let numbers: (Int64, Int64, Int64, Int64, Int64, UInt64, UInt64, Int64) = (
            change.revision.littleEndian, change.created.littleEndian, change.version.littleEndian,
            change.time.littleEndian, (change.expires ?? .min).littleEndian,
            (UInt64(UInt32(bitPattern: change.ordinal)) << 32 | UInt64(change.owner)).littleEndian,
            lengths.littleEndian, Int64(change.value?.count ?? -1).littleEndian
        )
        var sum = withUnsafeBytes(of: numbers) { Checksum.crc32c($0) }
        sum = Checksum.crc32c(change.key, after: sum)
        if let value = change.value { sum = Checksum.crc32c(value, after: sum) }
        return Checksum.crc32c(change.cause, after: sum)
    }

    // MARK: Reading

    /// Passes on what a frame has, one after the other; bytes are borrowed.
    ///
    /// - Parameters:
    ///   - contents: Those of the frame.
    ///   - frameTime: Its time.
    ///   - comparesRows: Whether the checksum of each row is compared: that of the frame covers them,
    ///     too.
    ///   - change: Called with each change.
    ///   - commit: Called with each commit, before its changes.
    ///   - metadata: Called with each text of metadata; nil: it was removed.
    /// - Throws: ``LogDamage``, if these are not the contents of a frame, or a row is not the one that
    ///   was written.
    package static func read(
        _ contents: Bytes,
        at frameTime: Int64,
        comparingRows comparesRows: Bool = true,
        change: (borrowing StoredChange, borrowing ChangeLink) -> Void,
        commit: (_ revision: Int64, _ time: Int64, [CommitAttribute]) -> Void = { _, _, _ in },
        metadata: (_ name: String, _ text: String?) -> Void = { _, _ in }
    ) throws(LogDamage) {
        var reader = LogReaderBytes(contents)
        var current = Position(time: frameTime)
        while !reader.isAtEnd {
            switch Tag(rawValue: try reader.byte()) {
            case .commit:
                let attributes = try current.begin(&reader, at: frameTime)
                commit(current.revision, current.time, attributes)
            case .change:
                let (found, link) = try readChange(&reader, current)
                guard !comparesRows || link.checksum == checksum(of: found) else {
                    throw LogDamage("has a row that is not the one that was written")
                }
                current.ordinal = found.ordinal
                change(found, link)
            case .metadata:
                let (name, text) = try readMetadata(&reader)
                metadata(name, text)
            case nil: throw LogDamage("has a part of an unknown kind")
            }
        }
    }

    /// What is said in the contents of a frame before a change.
    fileprivate struct Position {
        var revision: Int64 = 0
        var time: Int64
        var cause = Bytes(start: nil, count: 0)
        /// The place of the change before it in the commit.
        var ordinal: Int32 = -1

        /// Takes the head of a commit.
        mutating func begin(
            _ reader: inout LogReaderBytes,
            at frameTime: Int64
        ) throws(LogDamage) -> [CommitAttribute] {
            revision &+= try reader.signed()
            time = frameTime &+ (try reader.signed())
            cause = try reader.text()
            ordinal = -1
            var attributes: [CommitAttribute] = []
            for _ in 0..<(try reader.count()) {
                let kind = try reader.number()
                attributes.append(CommitAttribute(kind: kind, value: Array(try reader.text())))
            }
            return attributes
        }
    }

    private static func readMetadata(
        _ reader: inout LogReaderBytes
    ) throws(LogDamage) -> (name: String, text: String?) {
        let name = String(decoding: try reader.text(), as: UTF8.self)
        let hasText = try reader.byte() != 0
        return (name, hasText ? String(decoding: try reader.text(), as: UTF8.self) : nil)
    }

    /// Where a change begins in the contents of a frame, and what is said before it.
    struct Spot {
        let place: HistoryPlace
        fileprivate let offset: Int
        fileprivate let before: Position
        /// The cause of its commit.
        fileprivate let cause: Range<Int>
    }

    /// The places of all changes in the contents of a frame, in order.
    static func spots(in contents: Bytes, at frameTime: Int64) throws(LogDamage) -> [Spot] {
        var spots: [Spot] = []
        var reader = LogReaderBytes(contents)
        var current = Position(time: frameTime)
        while !reader.isAtEnd {
            switch Tag(rawValue: try reader.byte()) {
            case .commit: _ = try current.begin(&reader, at: frameTime)
            case .change:
                let offset = reader.offset
                let (change, _) = try readChange(&reader, current)
                spots.append(Spot(change.place, offset, current, in: contents))
                current.ordinal = change.ordinal
            case .metadata: _ = try readMetadata(&reader)
            case nil: throw LogDamage("has a part of an unknown kind")
            }
        }
        return spots
    }

    /// The change at a spot of some contents, compared with the checksum of its row.
    static func change(
        at spot: Spot,
        of contents: Bytes
    ) throws(LogDamage) -> (StoredChange, ChangeLink) {
        var reader = LogReaderBytes(contents, from: spot.offset)
        var before = spot.before
        before.cause = contents.slice(spot.cause.lowerBound, spot.cause.upperBound)
        let (change, link) = try readChange(&reader, before)
        guard link.checksum == checksum(of: change) else {
            throw LogDamage("has a row that is not the one that was written")
        }
        return (change, link)
    }

    private static func readChange(
        _ reader: inout LogReaderBytes,
        _ commit: Position
    ) throws(LogDamage) -> (StoredChange, ChangeLink) {
        let flags = Flags(rawValue: try reader.byte())
        var link = ChangeLink()
        link.isAfterDelete = flags.contains(.isAfterDelete)
        var change = StoredChange(
            revision: commit.revision,
            ordinal: try number(Int64(commit.ordinal) &+ (try reader.signed())),
            key: try reader.text(),
            value: flags.contains(.hasValue) ? try reader.text() : nil,
            created: commit.revision &- (try reader.signed()),
            owner: try number(Int64(bitPattern: try reader.number())),
            version: try reader.signed(),
            time: commit.time,
            cause: commit.cause,
            previousRevision: 0,
            previousOrdinal: 0
        )
        if flags.contains(.hasCause) { change.cause = try reader.text() }
        if flags.contains(.hasTime) { change.time = commit.time &+ (try reader.signed()) }
        if flags.contains(.expires) { change.expires = commit.time &+ (try reader.signed()) }
        if flags.contains(.supersedes) {
            change.previousRevision = commit.revision &- (try reader.signed())
            change.previousOrdinal = try number(try reader.signed())
        }
        link.checksum = try reader.fixed(UInt32.self)
        if flags.contains(.carries) { link.carried = try readCarried(&reader, commit) }
        return (change, link)
    }

    private static func readCarried(
        _ reader: inout LogReaderBytes,
        _ commit: Position
    ) throws(LogDamage) -> PastChange {
        let revision = commit.revision &- (try reader.signed())
        let ordinal: Int32 = try number(try reader.signed())
        let created = revision &- (try reader.signed())
        let owner: UInt32 = try number(Int64(bitPattern: try reader.number()))
        let version = try reader.signed()
        let time = commit.time &+ (try reader.signed())
        let expires = try reader.byte() == 0 ? nil : time &+ (try reader.signed())
        return PastChange(
            at: HistoryPlace(revision: revision, ordinal: ordinal),
            created: created,
            owner: owner,
            version: version,
            time: time,
            expires: expires,
            cause: Array(try reader.text()),
            value: Array(try reader.text())
        )
    }

    private static func number<Value: FixedWidthInteger>(_ value: Int64) throws(LogDamage) -> Value
    {
        guard let exact = Value(exactly: value) else {
            throw LogDamage("has a number that is out of range")
        }
        return exact
    }
}

extension CommitCoder.Spot {
    fileprivate init(
        _ place: HistoryPlace,
        _ offset: Int,
        _ before: CommitCoder.Position,
        in contents: Bytes
    ) {
        let start = before.cause.baseAddress.map { $0 - (contents.baseAddress ?? $0) } ?? 0
        (self.place, self.offset, self.before) = (place, offset, before)
        cause = start..<start + before.cause.count
    }
}

extension CodedCommits {
    fileprivate mutating func note(_ revision: Int64) {
        if first == 0 { first = revision }
        last = max(last, revision)
    }

    /// Reads what a frame has.
    ///
    /// - Throws: ``LogDamage``, as ``CommitCoder/read(_:at:comparingRows:change:commit:metadata:)``.
    init(reading contents: Bytes, at time: Int64) throws(LogDamage) {
        self.init(Array(contents))
        try sum(contents, at: time, comparingRows: true)
    }

    /// What an index knows of a frame, whose checksum covers the rows; without its bytes.
    ///
    /// - Throws: ``LogDamage``, as ``CommitCoder/read(_:at:comparingRows:change:commit:metadata:)``.
    init(summing frame: Frame.Found) throws(LogDamage) {
        self.init([])
        try sum(frame.contents, at: frame.time, comparingRows: false)
    }

    private mutating func sum(
        _ contents: Bytes,
        at time: Int64,
        comparingRows comparesRows: Bool
    ) throws(LogDamage) {
        // Closures may not both change this at once.
        var (known, count) = (self, 0)
        try CommitCoder.read(contents, at: time, comparingRows: comparesRows) { _, _ in
            count += 1
        } commit: { revision, _, _ in
            known.note(revision)
        }
        self = known
        changeCount += count
    }
}

extension CommitCoder {
    /// At most so many bytes of values are carried in one frame, where the disk has room for them.
    package static let carriedByteCount = 16 << 20

    /// What a change takes besides key and value, about.
    private static let changeByteCount = 64

    /// Adds the commits of a batch.
    ///
    /// - Parameters:
    ///   - batch: The batch.
    ///   - revision: What it has up to this one is appended already.
    ///   - line: Versions below this revision are carried by the change that supersedes them.
    ///   - byteLimit: At most so many bytes of values are.
    /// - Returns: The changes whose older versions are not known from some time on: they were too large
    ///   together to be carried, or only their places are known.
    package mutating func append(
        _ batch: borrowing CommitBatch,
        after revision: Int64 = 0,
        carryingBelow line: Int64,
        upTo byteLimit: Int = carriedByteCount
    ) -> [UncarriedChange] {
        var last: Int64?
        var cause = Bytes(start: nil, count: 0)
        var left = byteLimit
        var uncarried: [UncarriedChange] = []
        coded.reserve(batch.byteCount + CommitCoder.changeByteCount * batch.changeCount)
        batch.forEachLinkedChange { change, older in
            guard change.revision > revision else { return }
            if change.revision != last {
                (last, cause) = (change.revision, change.cause)
                begin(change.revision, at: change.time, cause: cause)
            }
            var link = ChangeLink()
            link.isAfterDelete = older.revision > 0 && older.isKnownDelete
            if older.revision > 0, older.revision < line, !older.isKnownDelete {
                left -= older.byteCount
                if left >= 0, let version = older.change {
                    link.carried = version
                    summary.carriedByteCount += older.byteCount
                } else {
                    let key = Array(change.key)
                    uncarried.append(UncarriedChange(key: key, revision: change.revision))
                }
            }
            append(change, link, cause: cause)
        }
        for entry in batch.metadata where entry.revision > revision {
            if entry.revision != last {
                last = entry.revision
                begin(entry.revision, at: frameTime, cause: Bytes(start: nil, count: 0))
            }
            append(metadata: entry.name, entry.text)
        }
        return uncarried
    }
}

/// A change that does not carry what it supersedes.
package struct UncarriedChange: Hashable, Sendable {
    package var key: [UInt8]
    package var revision: Int64

    package init(key: [UInt8], revision: Int64) { (self.key, self.revision) = (key, revision) }
}
