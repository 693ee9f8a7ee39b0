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
            guard holder.uid == context.connection.peer.uid else {
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
            for: context.restriction
        )
        try listings.list(listing, &context) { listing, context in
            context.output.writeArray(listing.count)
            context.output.append(listing.rows.bytes)
        }
    }
}

/// The names of the next level below a prefix, in key order: keys, and prefixes that end in `/`.
///
/// It skips what is below each name, so its cost follows the number of names. A name that a reader
/// sees may be found only behind keys that it must not see; a long listing runs in slices, and what
/// changes meanwhile may be missing.
private final class ChildListing: SlicedListing {
    private let prefix: [UInt8]
    private let limit: Int
    private let byteLimit: Int
    private let subject: Subject?
    /// Keys up to this one were read.
    private var passed: [UInt8]?
    private(set) var rows = ByteBuffer()
    private(set) var count = 0

    init(of pattern: Pattern, after: [UInt8]?, limit: Int, byteLimit: Int, for subject: Subject?) {
        prefix = pattern.literal
        passed = after.map { $0.last == UInt8(ascii: "/") ? ChildListing.end(of: $0) : $0 }
        (self.limit, self.byteLimit, self.subject) = (limit, byteLimit, subject)
    }

    var byteCount: Int { rows.footprint }

    /// Behind all keys that begin with a prefix: no key has this byte, for it is never in UTF-8.
    private static func end(of prefix: [UInt8]) -> [UInt8] { prefix + [0xFF] }

    func advance(
        in core: KeyspaceCore,
        until deadline: Int64,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        core.observeAll(&receipt)
        var pieceCount = 0
        while count < limit, let name = next(in: core) {
            rows.writeArray(1)
            rows.writeBulk(name)
            count += 1
            guard rows.count <= byteLimit else { throw replyTooBig(byteLimit) }
            passed = name.last == UInt8(ascii: "/") ? ChildListing.end(of: name) : name
            pieceCount += 1
            if pieceCount & 63 == 0, deadline != .max, clinux_monotonic_nanoseconds() >= deadline {
                return false
            }
        }
        return true
    }

    /// The name of the next entry that the reader may see; nil after the last.
    private func next(in core: KeyspaceCore) -> [UInt8]? {
        let visibility = core.visibility(of: subject)
        var name: [UInt8]?
        func look(_ bound: Bytes?) {
            prefix.withUnsafeBytes { prefix in
                core.entries.forEachPresent(below: prefix, after: bound) { record in
                    guard visibility.mayReveal(.read, about: record) else { return true }
                    let key = record.key
                    let slash = key[prefix.count...].firstIndex(of: UInt8(ascii: "/"))
                    name = Array(key[..<(slash.map { $0 + 1 } ?? key.endIndex)])
                    return false
                }
            }
        }
        if let passed { passed.withUnsafeBytes { look($0) } } else { look(nil) }
        return name
    }

    func end(in core: KeyspaceCore) {}
}
