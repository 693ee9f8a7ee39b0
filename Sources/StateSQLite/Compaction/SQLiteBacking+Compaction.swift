package import StateEngine

/// How far compaction goes.
struct CompactionGoal {
    /// The highest revision that somebody asked to compact to.
    var wantedRevision: Int64 = 0
    /// Whether somebody waits for it.
    var isAsked = false
    /// Whether it was worthwhile when a writer last asked: the commit thread knows that then.
    var wasWorthwhile = false
    /// The state in which nothing was left to compact; nil until that is known.
    var finished: Finished?

    /// Valid until the target or the newest revision changes.
    struct Finished: Equatable {
        var target: Int64
        var newest: Int64
    }
}

extension SQLiteBacking: CompactingBacking {
    /// How the newest versions of keys are looked up.
    var versions: NewestVersions? {
        get { settings.withLock { $0.versions } }
        set { settings.withLock { $0.versions = newValue } }
    }

    package func lookForRoom() {
        let isTried = inTurn { () -> Bool in
            guard let open else { return false }
            open.room.reserveByteCount = reserveByteCount
            // A checkpoint that failed is tried again, so that its error does not stay.
            let hasFailed =
                open.room.shortage != nil && !open.log.isMoved
                || open.log.status.checkpointFailure != nil && open.fault == nil
            if hasFailed { open.checkpoint() }
            open.room.look()
            return hasFailed
        }
        if isTried { maintain() }
    }

    package func raiseCompaction(to revision: Int64) {
        compactionGoal.wantedRevision = max(compactionGoal.wantedRevision, revision)
        compactionGoal.finished = nil
        inTurn {
            guard let open else { return }
            // It stays while somebody waits: with the retention, it would move as fast as the writers.
            compactionGoal.wantedRevision = target(in: open)
            compactionGoal.isAsked = true
            open.sweep.sweepsAll = true
            open.sweep.ruled.isAsked = true
        }
    }

    package func keep(by rules: HistoryRules?) { self.rules = rules }

    package func look(at versions: @escaping NewestVersions) { self.versions = versions }

    package func didLoad(superseding place: HistoryPlace, byteCount: Int) {
        found.rows?.supersede(place, byteCount: byteCount)
    }

    package func pauseCompaction() { pause.begin(at: clock()) }

    package func resumeCompaction() { pause.finish() }

    package var removalCount: Int { pause.removalCount }

    /// For how long compaction pauses if no more of a backup is read, rounded up; 0 if it does not.
    ///
    /// May be read on any thread.
    package var compactionPauseSeconds: Int64 { (pause.millisecondsLeft(clock) + 999) / 1_000 }

    package func compact(while goesOn: () -> Bool) throws(StateError) -> CompactionStep {
        try inTurn { () throws(StateError) in try compactNow(while: goesOn) }
    }

    private func compactNow(while goesOn: () -> Bool) throws(StateError) -> CompactionStep {
        let open = try openStore()
        let milliseconds = pause.millisecondsLeft(clock)
        guard milliseconds == 0 else {
            guard compactionGoal.isAsked else {
                return CompactionStep(compacted: open.sweep.compacted)
            }
            compactionGoal.isAsked = false
            throw CompactionPause.refusal(endingIn: milliseconds)
        }
        pause.countRemoval()
        defer { pause.countRemoval() }
        use(rules, in: open)
        let target = max(target(in: open), open.sweep.compacted)
        do {
            let step = try open.compact(through: target, while: goesOn)
            compactionGoal.finished =
                step.isDone
                ? CompactionGoal.Finished(target: target, newest: open.cuts.end.revision) : nil
            gauges.note(open)
            if !open.sweep.isSweeping { gauges.note(freeByteCount: try open.freeByteCount()) }
            gauges.note(failure: nil)
            if step.isDone { compactionGoal.isAsked = false }
            return step
        } catch {
            let error = stateError(error)
            compactionGoal.isAsked = false
            gauges.note(failure: error.message)
            throw error
        }
    }

    package func syncCompaction() throws(StateError) {
        try inTurn { () throws(StateError) in
            let open = try openStore()
            do { try open.syncCompaction() } catch { throw stateError(error) }
        }
    }

    package func shrink() throws(StateError) -> Int64 {
        try inTurn { () throws(StateError) in
            let open = try openStore()
            do {
                let count = try open.shrink()
                gauges.note(freeByteCount: try open.freeByteCount())
                return count
            } catch {
                throw stateError(error)
            }
        }
    }

    private func openStore() throws(StateError) -> OpenStore {
        guard let open else {
            throw StateError(.readOnly, "\(location.database) is not open: nothing was compacted")
        }
        return open
    }

    private func stateError(_ error: any Error) -> StateError {
        error as? StateError ?? StateError(.storage, "\(location.database): \(error)")
    }

    /// How much history there is; may be called from any thread.
    package var historyStatus: HistoryStatus { gauges.history }
}

extension SQLiteBacking {
    /// Takes what waits into the need.
    func add(
        _ backlog: Backlog,
        _ open: OpenStore,
        _ history: HistoryLimits,
        _ need: inout CompactionNeed
    ) {
        need.isAny = true
        // A quarter above the retention, so that ranges are long and the file stays bounded: busy
        // writers may go a quarter above the live rows, if that is more and the values are short.
        let rowSlack = min(max(Int64(history.changeCount) / 4, 1_024), Int64(SweepPlan.rowLimit))
        let byteSlack = max(history.byteCount / 4, 1 << 20)
        need.isWorthwhile =
            need.isWorthwhile || open.sweep.isSweeping
            || compactionGoal.wantedRevision > open.sweep.compacted
            || backlog.rowCount >= min(rowSlack, SQLiteBacking.worthwhileRowCount)
            || backlog.byteCount >= byteSlack
        let isShort = backlog.byteCount <= SQLiteBacking.shortByteCount
        let liveSlack = min(open.sweep.rows.neededCount / 4, SweepPlan.rowLimit)
        let busySlack = isShort ? max(rowSlack, Int64(liveSlack)) : rowSlack
        let isDue = backlog.rowCount > busySlack || backlog.byteCount > byteSlack
        need.isDue = need.isDue || isDue
        let isUrgent = backlog.rowCount > 2 * busySlack || backlog.byteCount > 2 * byteSlack
        need.isUrgent = need.isUrgent || isUrgent
        need.isOverdue = backlog.rowCount > 3 * busySlack || backlog.byteCount > 3 * byteSlack
    }
}
