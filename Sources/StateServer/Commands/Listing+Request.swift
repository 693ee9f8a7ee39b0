import StateEngine
import StateWire

extension Listing {
    /// What is listed.
    struct Request {
        var patterns: PatternSet
        /// Only keys behind this one.
        var after: [UInt8]?
        /// How many entries are counted at most.
        var limit = Int.max
        /// Bytes of rows at most; more is refused, or ends the listing if ``endsAtByteLimit``.
        var byteLimit: Int
        var endsAtByteLimit = false
        /// How many entries may be looked at; more is refused.
        var visitLimit = Int.max
        /// Who asks; entries that it may not see are passed over.
        var subject: Subject?
        /// Whether entries are seen as a watch sees them: what is durable, if the subject may watch it.
        var isOfWatch = false
        var form: Form
        /// Which of the entries that count have a row; nil for all.
        var rowsOf: Pattern?
        /// Whether keys that change behind the position are looked at again.
        var isOneMoment = true
        /// Said of more bytes than ``byteLimit``.
        var advice = "ask for parts with LIMIT and AFTER"
    }

    /// What a row is.
    enum Form {
        case nothing
        case key
        case row(Command.ListForm)
    }
}

/// What a listing does between two looks at the clock.
struct ListingPiece {
    /// As many bytes of keys are compared with patterns.
    static let comparedByteCount = 32 << 10
    /// That is about as many keys, of a usual length.
    static let comparedCount = comparedByteCount / 48
    private static let entryLimit = 256
    /// As many bytes of rows are written.
    private static let writtenByteCount = 128 << 10

    private(set) var entryCount = 0
    private let end: Int

    /// Begins when there are so many bytes of rows.
    init(_ byteCount: Int) { end = byteCount + ListingPiece.writtenByteCount }

    /// Counts an entry, with which there are so many bytes of rows; false at the end of the piece.
    mutating func takes(_ byteCount: Int) -> Bool {
        entryCount += 1
        return entryCount < ListingPiece.entryLimit && byteCount < end
    }
}

/// A reply that has grown beyond its limit.
func replyTooBig(
    _ byteCount: Int,
    _ advice: String = "ask for parts with LIMIT and AFTER"
) -> StateError {
    StateError(.tooBig, "a reply of more than \(byteCount) bytes; \(advice)")
}
