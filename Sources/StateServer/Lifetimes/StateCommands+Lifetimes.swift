import CLinux
import StateEngine
import StateWire

extension StateCommands {
    /// STATE.CLAIM: names the connection's claim to its keys, or takes over those of an earlier
    /// connection.
    func claim(_ claim: Bytes?, _ context: inout CommandContext) throws(StateError) {
        guard !context.isExecuting else {
            throw StateError(.err, "STATE.CLAIM is not allowed inside MULTI")
        }
        guard let holders = context.connection.holders else {
            preconditionFailure("a connection without holders")
        }
        if let claim {
            guard let holder = Holder(claim: claim) else {
                throw StateError(
                    .err,
                    "\(StateError.quoted(claim)) is not a claim: expected 16 hexadecimal digits"
                )
            }
            guard context.connection.subject.isUser(holder.uid) else {
                throw StateError(
                    .noPermission,
                    "claim \(holder.claim) belongs to uid \(holder.uid)"
                )
            }
            _ = try holders.claim(holder)
        }
        let holder = holders.connectionAsHolder()
        context.core.observeAll(&context.receipt)
        let count = context.core.entries.deadlines.holders.keyCount(of: holder)
        context.output.writeMap(3, context.version)
        context.output.writeField("claim", holder.claim)
        context.output.writeField("keys", Int64(count))
        context.output.writeField("grace", settings.options.graceMilliseconds / 1_000)
    }

    /// STATE.LIST … CHILDREN: the next level of names below a prefix.
    func children(
        _ pattern: Bytes,
        _ after: Bytes?,
        _ limit: Int,
        _ context: inout CommandContext
    ) throws(StateError) {
        let parsed = try Pattern(pattern)
        guard parsed.kind == .prefix else {
            throw StateError(
                .err,
                "CHILDREN needs a prefix that ends in /, not \(StateError.quoted(pattern))"
            )
        }
        let listing = ChildListing(
            of: parsed,
            after: after.map { Array($0) },
            limit: limit,
            byteLimit: settings.options.replyByteCount,
            visitLimit: context.execution?.visitsLeft ?? .max,
            for: context.restriction
        )
        try listings.list(listing, &context) { listing, context in
            context.output.writeArray(listing.count)
            listing.writeRows(to: &context.output)
        }
        context.execution?.visitsLeft -= listing.visitedCount
    }
}

/// The names of the next level below a prefix, in key order: keys, and prefixes that end in `/`.
///
/// It skips what is below each name, so its cost follows the number of names, and of the keys that
/// the reader must not see. A long listing runs in slices, and what changes meanwhile may be
/// missing.
private final class ChildListing: SlicedListing {
    private let prefix: [UInt8]
    private let limit: Int
    private let byteLimit: Int
    private let visitLimit: Int
    private let subject: Subject?
    /// Keys that were looked at.
    private(set) var visitedCount = 0
    /// Keys up to this one were read.
    private var passed: [UInt8]?
    private var rows = ByteBuffer(roomInFront: true)
    private(set) var count = 0

    init(
        of pattern: Pattern,
        after: [UInt8]?,
        limit: Int,
        byteLimit: Int,
        visitLimit: Int,
        for subject: Subject?
    ) {
        prefix = pattern.literal
        passed = after.map { $0.last == UInt8(ascii: "/") ? ChildListing.end(of: $0) : $0 }
        (self.limit, self.byteLimit, self.visitLimit) = (limit, byteLimit, visitLimit)
        self.subject = subject
    }

    /// Appends the rows to `output`; call this at the end.
    func writeRows(to output: inout ByteBuffer) { output.append(taking: &rows) }

    var byteCount: Int { rows.footprint }

    /// Behind all keys that begin with a prefix: no key has this byte, for it is never in UTF-8.
    private static func end(of prefix: [UInt8]) -> [UInt8] { prefix + [0xFF] }

    func advance(
        in core: KeyspaceCore,
        until deadline: Int64,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        core.observeAll(&receipt)
        let visibility = core.visibility(of: subject)
        while count < limit, let found = next(in: core, visibility) {
            if found.isSeen {
                rows.writeArray(1)
                rows.writeBulk(found.name)
                count += 1
                guard rows.count <= byteLimit else { throw replyTooBig(byteLimit) }
            }
            let isKey = !found.isSeen || found.name.last != UInt8(ascii: "/")
            passed = isKey ? found.name : ChildListing.end(of: found.name)
            guard visitedCount <= visitLimit else { throw visitsTooMuch(visitLimit) }
            if deadline != .max, clinux_monotonic_nanoseconds() >= deadline { return false }
        }
        return true
    }

    /// The most hidden keys between two looks at the clock.
    private static let hiddenCount = 256

    /// The name of the next entry that the reader may see, or a key up to which it may see none;
    /// nil after the last.
    private func next(
        in core: KeyspaceCore,
        _ visibility: Visibility
    ) -> (name: [UInt8], isSeen: Bool)? {
        var found: (name: [UInt8], isSeen: Bool)?
        var hiddenCount = 0
        func look(_ bound: Bytes?) {
            prefix.withUnsafeBytes { prefix in
                core.entries.forEachPresent(below: prefix, after: bound) { record in
                    visitedCount += 1
                    let key = record.key
                    guard visibility.mayReveal(.read, about: record) else {
                        hiddenCount += 1
                        guard hiddenCount == ChildListing.hiddenCount else { return true }
                        found = (Array(key), false)
                        return false
                    }
                    let slash = key[prefix.count...].firstIndex(of: UInt8(ascii: "/"))
                    found = (Array(key[..<(slash.map { $0 + 1 } ?? key.endIndex)]), true)
                    return false
                }
            }
        }
        if let passed { passed.withUnsafeBytes { look($0) } } else { look(nil) }
        return found
    }

    func end(in core: KeyspaceCore) {}
}
