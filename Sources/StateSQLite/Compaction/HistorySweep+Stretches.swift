import StateEngine

/// Sweeping stretches: of the rows up to the compacted revision, and of those behind it that rules do
/// not keep.
extension HistorySweep {
    /// Begins to sweep all stretches in order, if somebody asked for it.
    func beginPass() -> Bool {
        guard sweepsAll else { return false }
        sweepsAll = false
        rows.beginPass()
        return true
    }

    /// Begins with the next stretch, if one is due and no range is under way.
    func beginStretch() -> Bool {
        guard plan == nil else { return false }
        if stretch == nil {
            stretch = rows.next().map { StretchSweep($0, of: rows, keepsTombstones: !isComplete) }
        }
        return stretch != nil
    }

    /// Deletes on in the stretch, in the transaction that is open; then comes ``didCommit()`` or
    /// ``didFail()``.
    func deleteStretch(
        _ step: inout CompactionStep,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Int64 {
        begin()
        try ruled.writeFloors(above: compacted)
        return try stretch?.deleteOn(statements.stretchRows, &step, while: goesOn) ?? 0
    }

    // MARK: What rules do not keep

    /// Looks at rows for the rules; see ``RuleSweep/look(_:after:_:at:while:)``.
    func lookAtRuled(
        _ cuts: HistoryCuts,
        at time: Int64,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Bool {
        try ruled.look(&rows, after: counted, cuts, at: time, while: goesOn)
    }

    /// Deletes on in a stretch of the rules, as ``deleteStretch(_:while:)`` does.
    func deleteRuledStretch(
        _ step: inout CompactionStep,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Int64 {
        retained.stop()
        begin()
        try ruled.writeFloors(above: compacted)
        return try ruled.deleteStretch(&step, while: goesOn)
    }
}
