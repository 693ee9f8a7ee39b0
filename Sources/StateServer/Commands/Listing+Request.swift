import StateEngine
import StateWire

extension Listing {
    /// What to list.
    struct Request {
        var patterns: PatternSet
        /// Only keys after this one.
        var after: [UInt8]?
        /// The most entries to count.
        var limit = Int.max
        /// The most bytes of rows; more is refused, or ends the listing if ``endsAtByteLimit``.
        var byteLimit: Int
        var endsAtByteLimit = false
        /// The most entries to visit; more is refused.
        var visitLimit = Int.max
        /// The requesting subject; entries that it may not see are skipped.
        var subject: Subject?
        /// Whether entries appear as for a watch: the durable ones that the subject may watch.
        var isOfWatch = false
        var form: Form
        /// Which of the counted entries get a row; nil for all.
        var rowsOf: Pattern?
        /// Whether keys that change before the position are visited again.
        var isOneMoment = true
        /// The advice in the error for more bytes than ``byteLimit``.
        var advice = "use LIMIT and AFTER to get it in parts"
    }

    /// The form of a row.
    enum Form {
        case nothing
        case key
        case row(Command.ListForm)
    }
}

/// The work of a listing between two checks of the clock.
struct ListingPiece {
    /// How many bytes of keys are compared with patterns.
    static let comparedByteCount = 8 << 10
    /// So many of them are one visited entry: a key of typical length.
    static let byteCountOfComparison = 48
    private static let entryLimit = 256
    /// How many bytes of rows are written.
    private static let writtenByteCount = 128 << 10

    private(set) var entryCount = 0
    private let end: Int

    /// Begins with so many bytes of rows.
    init(_ byteCount: Int) { end = byteCount + ListingPiece.writtenByteCount }

    /// Counts an entry, after which there are so many bytes of rows.
    ///
    /// Returns false at the end of the piece.
    mutating func takes(_ byteCount: Int) -> Bool {
        entryCount += 1
        return entryCount < ListingPiece.entryLimit && byteCount < end
    }
}

/// The error for a reply above its size limit.
func replyTooBig(
    _ byteCount: Int,
    _ advice: String = "use LIMIT and AFTER to get it in parts"
) -> StateError {
    StateError(.tooBig, "the reply would have more than \(byteCount) bytes, the limit; \(advice)")
}

func visitsTooMuch(_ limit: Int) -> StateError {
    StateError(.limit, "more than \(limit) entries in one transaction, the limit; list fewer")
}
