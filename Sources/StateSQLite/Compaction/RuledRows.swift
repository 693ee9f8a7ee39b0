import StateEngine

/// A row as the rules look at it.
struct RuledRow {
    /// A row that supersedes another, with what a rule keeps of its key.
    struct Candidate {
        var row: RuledRow
        var previous: HistoryPlace
        var kept: KeptHistory
        var created: Int64
        var version: Int64
        /// Empty if the number of versions does not matter.
        var key: [UInt8]
    }

    var number: Int64
    var place: HistoryPlace
    var byteCount: Int64
}

/// Reads rows in order of their numbers, with the rules of their keys.
final class RuledRowReader {
    /// What was read at once.
    struct Piece {
        var rows: [RuledRow] = []
        var candidates: [RuledRow.Candidate] = []
        /// Numbers up to here are read.
        var end: Int64
    }

    private let scan: SQLiteStatement
    var versions: NewestVersions?

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        scan = try connection.prepare(
            """
            SELECT number, revision, ordinal, length(value), key, created, version,
                previous_revision, previous_ordinal
            FROM history WHERE number>=? AND number<=? ORDER BY number
            """
        )
    }

    /// Reads at most 1,024 rows, or about 1 MiB of values.
    func read(
        _ numbers: ClosedRange<Int64>,
        by rules: HistoryRules,
        _ blocks: RuleBlocks
    ) throws(SQLiteFailure) -> Piece {
        let last = min(numbers.upperBound, numbers.lowerBound + RuleBlocks.rowCount - 1)
        var piece = Piece(end: last)
        scan.bind(1, numbers.lowerBound)
        scan.bind(2, last)
        defer { scan.reset() }
        var byteCount: Int64 = 0
        while try scan.step() {
            let row = RuledRow(
                number: scan.number(at: 0),
                place: HistoryPlace(
                    revision: scan.number(at: 1),
                    ordinal: Int32(truncatingIfNeeded: scan.number(at: 2))
                ),
                byteCount: scan.number(at: 3)
            )
            piece.rows.append(row)
            if !blocks.isDecided(row.number), let candidate = candidate(row, rules) {
                piece.candidates.append(candidate)
            }
            // The columns behind a long value are far away.
            byteCount += row.byteCount
            guard byteCount <= 1 << 20 else {
                piece.end = row.number
                break
            }
        }
        return piece
    }

    private func candidate(_ row: RuledRow, _ rules: HistoryRules) -> RuledRow.Candidate? {
        guard let key = scan.bytes(at: 4), let kept = rules.kept(of: key) else { return nil }
        let previous = scan.number(at: 7)
        guard previous > 0 else { return nil }
        let isCounted = kept.changeCount > 0 && kept.changeCount < .max
        return RuledRow.Candidate(
            row: row,
            previous: HistoryPlace(
                revision: previous,
                ordinal: Int32(truncatingIfNeeded: scan.number(at: 8))
            ),
            kept: kept,
            created: scan.number(at: 5),
            version: scan.number(at: 6),
            key: isCounted ? Array(key) : []
        )
    }

    // MARK: Counting versions

    /// How many versions of its key have come after each row, at least.
    ///
    /// The keyspace knows the number of the newest version, which begins anew when a key is created;
    /// besides, the rows that were read together are counted. So of a key that is deleted and set
    /// again and again, some more may stay.
    func ranks(of candidates: [RuledRow.Candidate]) -> [Int64] {
        var ranks = [Int64](repeating: 0, count: candidates.count)
        let counted = candidates.indices.filter { !candidates[$0].key.isEmpty }
        guard !counted.isEmpty, let versions else { return ranks }
        let newest = versions(counted.map { candidates[$0].key })
        guard newest.count == counted.count else { return ranks }
        var laterCounts: [[UInt8]: Int64] = [:]
        for (index, version) in zip(counted, newest).reversed() {
            let rank = version.map { candidates[index].rank(below: $0) } ?? 0
            ranks[index] = max(rank, laterCounts[candidates[index].key, default: 0])
            laterCounts[candidates[index].key, default: 0] += 1
        }
        return ranks
    }
}

extension RuledRow.Candidate {
    /// How many versions have come after it; 0 if the newest one is earlier, because the keyspace
    /// has not settled the last commits yet.
    fileprivate func rank(below newest: NewestVersion) -> Int64 {
        if newest.created == created, version > 0 { return max(0, newest.version - version) }
        guard newest.created > row.place.revision else { return 0 }
        // The key was deleted, which counts, and set again.
        return newest.version + (version > 0 ? 1 : 0)
    }
}

/// Finds which rows of stretches are superseded, for a walk over them in order.
struct SupersededWalk {
    private var index = -1
    private var places = OrderedPlaces([])

    /// Whether a row is superseded; rows are asked for in order, and the stretches do not change.
    mutating func has(_ place: HistoryPlace, in rows: SweptRows) -> Bool {
        guard rows.supersededCount > 0 else { return false }
        let found = rows.stretches.partitioningIndex { $0.first > place } - 1
        guard found >= 0, place <= rows.stretches[found].last,
            let packed = PackedPlace(place, after: rows.stretches[found].first)
        else { return false }
        if found != index {
            index = found
            places = OrderedPlaces(rows.stretches[found].superseded)
        }
        return places.has(packed)
    }
}
