# The mutants of scripts/faults: each breaks one law with one small change, and a check has to find it. Sourced, not run.

# Name, law, files, what sed does to them, environment and filter of the check.
mutants=(
    "no-undo"
    "atomic: what a failed commit did stays in memory"
    "Sources/StateEngine/Transactions/KeyspaceCore+Undoing.swift"
    's/for record in batch.changes.reversed() where !record.isPublished { undo(record) }//'
    "STATED_DISK_TURNS=2" "FailingDiskTests"

    "settle-silent"
    "never silent about storage: settling that failed is not named"
    "Sources/StateSQLite/Settling/Settler.swift"
    's/note(failure: error.message)/_ = error.message/'
    "STATED_TEST=1" "settling that fails is named"

    "no-checksum"
    "never silent about storage: the checksum of a row is not looked at"
    "Sources/StateSQLite/Settling/SettledDatabase.swift"
    's/guard checksum == Int64(CommitCoder.checksum(of: change)), change.isPossible/guard checksum > .min, change.isPossible/'
    "STATED_TEST=1" "RefusalTests"

    "early-read"
    "durable before acknowledged: a read of what is not on disk yet is answered at once"
    "Sources/StateEngine/Keyspace/KeyspaceCore.swift"
    '/package func read(_ key: Bytes,/,/^    }/s/receipt.noteRead(head)/_ = receipt.revision/'
    "STATED_POWER_CUTS=100" "PowerCutTests"

    "early-write"
    "durable before acknowledged: a transaction is answered before it is on disk"
    "Sources/StateEngine/Transactions/KeyspaceCore+Writing.swift"
    's/receipt.noteCommit(transaction.revision)$/receipt.noteReported(transaction.revision)/'
    "STATED_POWER_CUTS=100" "PowerCutTests"

    "early-apply"
    "durable before acknowledged: one handler answers before what it wrote is on disk"
    "Sources/StateServer/Commands/StateCommands.swift"
    '/func apply($/,/^    }/s/waitingFor: .storage/waitingFor: .nothing/'
    "STATED_POWER_CUTS=100" "StateServerTests"

    "stale-read"
    "ordered: a read is answered with the version before the last"
    "Sources/StateEngine/Keyspace/KeyspaceCore.swift"
    's/return head.isDeleted || isDue(head) ? nil : head$/return head.isDeleted ? nil : head.older ?? head/; /if let older {/,/}/{s/record.older = nil//; s/entries.free(older)/_ = older/}'
    "STATED_LINEAR_HISTORIES=20" "[Ll]inear"

    # One for each guarantee of a watch.
    "watch-skips"
    "reliable: a commit for which a watcher had no room is skipped"
    "Sources/StateEngine/Watching/Watcher.swift"
    's/block(at: revision - 1)/block(at: revision)/'
    "STATED_WATCH_SECONDS=40" "every guarantee of a watch"

    "watch-other-epoch"
    "resumable: the revision of another store is taken for one of this"
    "Sources/StateEngine/Watching/Watcher.swift"
    's/epoch == nil || epoch == core.epoch/epoch == nil || present >= 0/'
    "STATED_WATCH_SECONDS=20" "every guarantee of a watch"

    "watch-splits"
    "atomic: a watcher gets only the first changes of a large commit"
    "Sources/StateEngine/Watching/Watcher.swift"
    's/receive(.commit(revision: revision, changes: matched)/receive(.commit(revision: revision, changes: Array(matched.prefix(8)))/'
    "STATED_WATCH_SECONDS=20" "every guarantee of a watch"

    "watch-repeats"
    "unique: each piece of the history begins with the last commit of the one before"
    "Sources/StateServer/Watches/CatchUpJob.swift"
    's/place = .end(of: missed.position)/place = .end(of: missed.position - 1)/'
    "STATED_WATCH_SECONDS=20" "every guarantee of a watch"

    "watch-turns"
    "ordered: the values of a round come newest first"
    "Sources/StateEngine/Watching/LatestKeys.swift"
    '/let keys = pending.sorted/s/ < / > /'
    "STATED_WATCH_SECONDS=20" "every guarantee of a watch"

    "watch-pending-lost"
    "bookmarkable: a round is closed without what was changed while the history was read"
    "Sources/StateEngine/Watching/Watcher+Advancing.swift"
    's/for (key, change) in pending { latest?.add(key, change) }//'
    "STATED_WATCH_SECONDS=20" "every guarantee of a watch"

    # One for each way in which a copy of a cluster could become another.
    "mirror-order"
    "ordered: a change of a cluster need not follow on what is here"
    "Sources/StateServer/Cluster/MirrorCommands.swift"
    's/known == change.version - 1/known >= 0/'
    "STATED_TEST=1" "MirrorTests"

    "mirror-position"
    "atomic: the position of a copy is stored before its commit, not in it"
    "Sources/StateServer/Cluster/MirrorCommands.swift"
    '/private func take(/,/^    }/{s/here = \(try context.write(waitingFor: .storage) { (\)transaction\() throws(StateError) in\)/\1first\2 try first.setMetadata(MirrorPosition.metadataName, to: text) }; &/; s/try transaction.setMetadata(name, to: text, isDeferrable: true)/_ = (name, text)/}'
    "STATED_TEST=1" "MirrorTests"

    "mirror-stamp"
    "never an older state: an etcd that was restored is taken for the same history"
    "Sources/StateEtcd/MirrorStream+History.swift"
    's/return isSame ? nil : "etcd was restored from a backup"/return isSame ? nil : nil/'
    "STATED_TEST=1" "ClusterTests"

    "mirror-leader"
    "never silent: a member that has lost the others does not say so"
    "Sources/StateEtcd/HTTP2Connection.swift"
    's/, ("hasleader", "true"),/,/'
    "STATED_TEST=1" "ClusterTests"

    "loop-waits"
    "bounded: others wait for the disk as long as a commit on the loop's thread does"
    "Sources/StateServer/EventLoop/LoopSubstitute.swift"
    's/guard start > 0 else/guard start < 0 else/'
    "STATED_TEST=1" "CommitsHereTests"

    "deferral-log"
    "durable before acknowledged: what is stored later is in no log meanwhile"
    "Sources/StateEngine/Commits/CommitQueue+Deferring.swift"
    's/capabilities.deferrals?.keep(through: revision) ?? true/revision >= 0/'
    "STATED_TEST=1" "IntervalDurabilityTests"

    "unkept-reply"
    "durable before acknowledged: what is stored later is confirmed before it is in the log"
    "Sources/StateServer/Clients/ReplyGate.swift"
    's/let isUnkept = context.receipt.published > max(durable, kept)/let isUnkept = context.receipt.published > max(durable, kept, .max - 1)/'
    "STATED_TEST=1" "StalledDiskTests"

    # One for each way in which a change of a cluster could be made twice, or on what has changed.
    "cluster-session"
    "at most once: a batch of a link whose session has ended is made"
    "Sources/StateEtcd/MirrorWriter.swift"
    's/transaction.require(filter.sessionKey(of: node), has: session)/_ = session/'
    "STATED_TEST=1" "ClusterTests"

    "cluster-guard"
    "linearizable: what a command has read may change before it is made"
    "Sources/StateEngine/Cluster/KeyspaceCore+Attempting.swift"
    's/use.noteRead(key, isPresent: known.map { !$0.isDeleted } ?? false)/_ = known/'
    "STATED_TEST=1" "ClusterWriteTests"

    "cluster-end"
    "atomic: a key whose time has passed is deleted although it was set anew"
    "Sources/StateEngine/Cluster/KeyspaceCore+Ending.swift"
    's/reads: \[key: true\],/reads: [:],/'
    "STATED_TEST=1" "ClusterTimeTests"

    "cluster-early"
    "durable before acknowledged: a change of a cluster is answered when it is sent"
    "Sources/StateServer/Commands/CommandContext.swift"
    's/if core.transaction.awaitsCluster, try isOffered() {/if core.transaction.awaitsCluster, try isOffered() { offer = nil/'
    "STATED_TEST=1" "ClusterWriteTests"

    # The log, and the database that it is settled into.
    "log-no-sync"
    "durable before acknowledged: the log does not sync its frames"
    "Sources/StateLog/StateLog.swift"
    '/private func syncFrames/,/^    }/s/guard syncedEnd < end else { return }/guard syncedEnd < end else { return }; guard syncedEnd < 0 else { return noteSynced(upTo: end) }/'
    "STATED_TEST=1" "StateLogTests"

    "log-next-first"
    "durable before acknowledged: the next segment names an end that is not synced"
    "Sources/StateLog/StateLog.swift"
    '/private func takeNextSegment/,/^    }/s/^        try syncFrames()$//'
    "STATED_TEST=1" "StateLogTests"

    "log-no-place"
    "never silent about storage: frames do not say how far the log is durable"
    "Sources/StateLog/StateLog.swift"
    's/durable: syncedPlace, time: time, commits: encode(carryLine)/durable: .none, time: time, commits: encode(carryLine)/; s/frame.durable = syncedPlace//'
    "STATED_TEST=1" "StateLogTests"

    "log-no-names"
    "durable before acknowledged: the name of a segment is not synced"
    "Sources/StateLog/StateLog.swift"
    '/syncingPieces syncsPieces/,/^    }/s/try files.syncNames()//'
    "STATED_TEST=1" "StateLogTests"

    "log-believed"
    "durable before acknowledged: a start believes what the page cache has of the end of the log"
    "Sources/StateLog/StateLog.swift"
    's/^        try repairEnd()$/        noteSynced(upTo: end)/'
    "STATED_TEST=1" "StateLogTests"

    "log-not-carried"
    "complete: a version whose segment is dropped is not carried"
    "Sources/StateLog/CommitCoder.swift"
    's/if link.carried != nil { flags.insert(.carries) }//'
    "STATED_TEST=1" "LogHistoryTests"

    "log-old-line"
    "complete: a frame has the carry line of the segment before its own"
    "Sources/StateLog/StateLog.swift"
    's/^            frame.commits = encode(carryLine)$//'
    "STATED_TEST=1" "LogHistoryTests"

    "log-floor"
    "a gap is never silent: the floor of the history is one revision too low"
    "Sources/StateLog/StateLog.swift"
    's/revision.map { $0 - 1 }/revision.map { $0 - 2 }/'
    "STATED_TEST=1" "LogHistoryTests"

    "settle-unsynced"
    "durable before acknowledged: segments go although the database is not synced"
    "Sources/StateSQLite/Settling/Settler.swift"
    's/^            if !rest.isEmpty || mustCheckpoint { try checkpoint(database) }$/            durable = facts.place/'
    "STATED_TEST=1" "SettledStoreTests"

    "settle-unlooked"
    "never silent about storage: the result of a checkpoint is not looked at"
    "Sources/StateSQLite/Settling/Settler.swift"
    's/guard isWhole else {/guard isWhole || durable <= facts.place else {/'
    "STATED_TEST=1" "SettledIdentityTests"

    "rows-beyond-log"
    "never an older state: a log of yesterday beside rows that only it can explain"
    "Sources/StateSQLite/SQLiteBacking.swift"
    's/lastRow <= max(facts.revision, rest.revision)/lastRow >= 0/'
    "STATED_TEST=1" "StoreCheckTests"

    "backup-floor"
    "complete: a backup has no rows between what is settled and the floor"
    "Sources/StateServer/Backup/BackupReading.swift"
    's/floor = min(compacted, settled.settledRevision)/floor = compacted/'
    "STATED_TEST=1" "SettledBackupTests"

    "rewrite-life"
    "never silent about storage: a segment that is written again forgets the life of the store"
    "Sources/StateLog/SegmentRewrite.swift"
    's/if frame.kind == .life {/if frame.kind == .mark {/'
    "STATED_TEST=1" "SettledRuleTests"

    "spare-unnamed"
    "durable before acknowledged: a prepared file that somebody has removed gets commits"
    "Sources/StateLog/StateLog.swift"
    's/if files.finding(among: .(spare.name, spare.file).) == nil { return spare }/return spare/'
    "STATED_TEST=1" "StoreFileTests"

    "life-unmoved"
    "never an older state: a database alone passes for a clean copy after a kill"
    "Sources/StateSQLite/SQLiteBacking.swift"
    's/let isMoved = try moveLife(database)/let isMoved = true/'
    "STATED_TEST=1" "SettledIdentityTests"

    "carried-past-rules"
    "a gap is never silent: what a rule has removed is read from the change that carries it"
    "Sources/StateLog/LogView.swift"
    's/guard let successor, place.revision < firstRevision else/guard let successor else/'
    "STATED_COMPACTION_RUNS=4" "SettledRuleTests"

    "older-than-rewrite"
    "never silent about storage: a database from before a segment was written again is read"
    "Sources/StateLog/LogScan.swift"
    's/$0.isRewritten && $0.header.number >= start.place.segment/$0.isRewritten \&\& start.place.segment == 0/'
    "STATED_TEST=1" "SettledRuleTests"

    "fork-writes"
    "one authority: a child that was forked writes to the store of its parent"
    "Sources/StateSystem/HomeProcess.swift"
    's/clinux_fork_count() == forkCount/clinux_fork_count() >= forkCount/'
    "STATED_TEST=1" "SettledKillTests"

    "settle-believed"
    "durable before acknowledged: what the page cache has of the database after an error is believed"
    "Sources/StateSQLite/Settling/Settler.swift"
    's/if !trust.isConfirmed {/if trust.isConfirmed {/'
    "STATED_TEST=1" "SettledStoreTests"

    "settle-uncounted"
    "never silent about storage: a row that is missing is not noticed"
    "Sources/StateSQLite/SQLiteBacking.swift"
    's/guard rowCount == facts.rowCount else/guard rowCount >= 0 else/'
    "STATED_TEST=1" "SettledIdentityTests"

    "settle-other-life"
    "never silent about storage: an older database beside a newer log is served"
    "Sources/StateSQLite/SQLiteBacking.swift"
    's/guard \[log.life.number, log.life.before\].contains(facts.life.number),/guard facts.life.number < 1 << 60,/'
    "STATED_TEST=1" "SettledIdentityTests"

    "settle-not-carried"
    "complete: a change does not carry the version that it supersedes"
    "Sources/StateLog/CommitCoder.swift"
    's/older.revision < line, !older.isKnownDelete {/older.revision < line, older.byteCount > 1 << 40 {/'
    "STATED_TEST=1" "SettledPastTests"

    "settled-backup-older"
    "complete: a backup leaves out what a change has superseded that only the log has"
    "Sources/StateServer/Backup/BackupReading.swift"
    's/includesHistory \&\& previous.revision <= beginning.floor/includesHistory \&\& previous.revision < 0/'
    "STATED_TEST=1" "SettledBackupTests"

    "interval-boot"
    "never silent: what the end of the machine has lost counts as there"
    "Sources/StateSQLite/SQLiteBacking.swift"
    's/hasAllDeferred = bootMark.isOfThisBoot/hasAllDeferred = true/'
    "STATED_TEST=1" "IntervalDurabilityTests"

    "interval-voided"
    "durable before told: what was shown is void after a failed sync"
    "Sources/StateLog/StateLog.swift"
    's/kept = known + unknown.filter(.*$/kept = known/'
    "STATED_TEST=1" "StateLogTests"

    "sync-covers-later"
    "durable before told: a sync counts for what was appended while it ran"
    "Sources/StateLog/StateLog.swift"
    's/case .success: noteSynced(upTo: sync.end)/case .success: noteSynced(upTo: end)/'
    "STATED_TEST=1" "StateLogTests"

    "settled-trim-floor"
    "a gap is never silent: what rules do not keep goes before anybody says so"
    "Sources/StateSQLite/Settling/Settler.swift"
    's/try raise(floors)$/_ = floors/'
    "STATED_TEST=1" "SettledRuleTests"

    "settled-backup-pause"
    "complete: a store settles while a backup reads its rows, and nobody notices"
    "Sources/StateSQLite/Settling/Settler.swift"
    's/^        pause.countRemoval()$//; s/^        defer { pause.countRemoval() }$//'
    "STATED_TEST=1" "SettledBackupTests"

    "settled-backup-ended"
    "complete: a store that waits to settle ends each backup that is made meanwhile"
    "Sources/StateSQLite/Settling/Settler.swift"
    '0,/^        guard !isPaused() else { return false }$/s/^        guard !isPaused() else { return false }$//'
    "STATED_TEST=1" "SettledBackupTests"

    "settle-own-reader"
    "never silent about storage: a reader of this process passes for another one, and settling fails"
    "Sources/StateSQLite/Settling/CompactionPause.swift"
    's/return try rows.withLock { (_) throws(Failure) in try body() }/return try body()/'
    "STATED_TEST=1" "SettledPastTests"

    "copy-same-life"
    "never an older state: the database of a copy fits the log of the original"
    "Sources/StateSQLite/SQLiteBacking.swift"
    's/let step = isCopy ? UInt64.random(in: 1...1 << 32) : 1/let step: UInt64 = isCopy ? 1 : 1/'
    "STATED_TEST=1" "SettledIdentityTests"

    "log-line-quiet"
    "a gap is never silent: after a quiet time nothing is carried, and the history goes"
    "Sources/StateLog/StateLog.swift"
    's/return max(first ?? lastRevision + 1, leastFloor + 1)/return max(first ?? 0, leastFloor + 1)/'
    "STATED_TEST=1" "LogHistoryTests"

    "log-line-floor"
    "complete: what a compaction has removed is linked to, not carried"
    "Sources/StateLog/StateLog.swift"
    's/return max(first ?? lastRevision + 1, leastFloor + 1)/return first ?? 0/'
    "STATED_TEST=1" "WatchCommandTests"

    "log-frame-forgotten"
    "bounded: each version of a large commit is looked for from the beginning of its frame"
    "Sources/StateLog/LogView.swift"
    's/if known?.hasRange(of: place) != true {/do {/'
    "STATED_TEST=1" "SettledPastTests"

    "settle-forgets"
    "a gap is never silent: a delete is forgotten although somebody may ask what was before it"
    "Sources/StateSQLite/Settling/SettledDatabase.swift"
    's/WHERE value IS NULL AND revision <= .* LIMIT/WHERE value IS NULL LIMIT/'
    "STATED_TEST=1" "SettledPastTests"

    "room-unasked"
    "a store uses what is in reserve for deletes and settling"
    "Sources/StateSQLite/Settling/DiskRoom.swift"
    's/state.shortage = isShort ? .*/state.shortage = nil/'
    "STATED_TEST=1" "DiskRoomTests"

    "room-unlimited"
    "atomic: settling one large transaction takes more room than there is"
    "Sources/StateSQLite/Settling/DiskRoom.swift"
    's/rest.prefix(SettledDatabase.count(of: rest, upTo: limit))/rest.prefix(max(limit, rest.count))/'
    "STATED_TEST=1" "SettledDiskTests"

    "log-same-number"
    "never silent about storage: a file takes over with the number of one that may be there"
    "Sources/StateLog/StateLog.swift"
    '/private func makeReplacementHeader/,/^    }/s/makeHeader(/makeHeader(repeating: true, /; s/^        nextNumber += 1$/        if !repeating { nextNumber += 1 }/; s/^    private func makeHeader($/    private func makeHeader(repeating: Bool = false, /'
    "STATED_TEST=1" "StateLogTests"

    "log-stale-frames"
    "never an older state: what a file that is used again had before passes for frames"
    "Sources/StateLog/Frame.swift Sources/StateLog/LogScan.swift"
    's/seed: \[seed, place.segment, /seed: [0, 0, /; s/guard let frame, frame.before == end.checksum else/guard let frame else/'
    "STATED_TEST=1" "StateLogTests"

    "log-behind-torn"
    "ordered: what is behind a torn end is read"
    "Sources/StateLog/LogScan.swift"
    's/guard isThere else { break }/if !isThere { end.place.offset += Frame.alignment }/; s/guard let frame, frame.before == end.checksum else/guard let frame else/'
    "STATED_TEST=1" "StateLogTests"

    "log-early-refusal"
    "never silent about storage: a commit is refused before it is known what the disk has"
    "Sources/StateLog/StateLog.swift"
    's/StateError(.readOnly, "\\(StateError.unknownOutcome): \\(reason)")/StateError(.readOnly, "not committed: \\(reason)")/'
    "STATED_DISK_TURNS=40" "StateLogTests|FailingDiskTests"

    "settle-early"
    "durable before told: what is not synced in the log is settled"
    "Sources/StateLog/StateLog.swift Sources/StateSQLite/Settling/Settler.swift"
    's/\[(segment, syncedEnd)\]/[(segment, end)]/; s/snapshot(start: place, end: syncedPlace/snapshot(start: place, end: endPlace/; s/let end = tail.withLog { $0.syncedPlace }/let end = tail.withLog { $0.endPlace }/; s/LogSnapshot(start: place, end: syncedPlace/LogSnapshot(start: place, end: endPlace/'
    "STATED_TEST=1" "SettledBackupTests"

    "drop-unsettled"
    "durable before acknowledged: a segment goes that the database does not have"
    "Sources/StateSQLite/Settling/Settler.swift"
    '/private func drop()/,/^    }/{s/\[durable\] in //; s/before: durable/before: $0.syncedPlace/}'
    "STATED_TEST=1" "StateSQLiteTests"

    "floor-first-line"
    "a gap is never silent: a floor looks at the line of one segment, not at those of all later ones"
    "Sources/StateLog/StateLog.swift"
    's/let whole = lines\[count...\].*/let whole = lines[count...].firstIndex { $0 >= oldest }.map { lines.count - $0 } ?? 0/'
    "STATED_TEST=1" "LogHistoryTests"

    "room-under-backup"
    "a backup goes on as long as nobody is refused: a disk that is nearly full ends it"
    "Sources/StateSQLite/Settling/Settler.swift"
    's/guard room.level == .short || !isPaused else { return }/_ = isPaused/'
    "STATED_TEST=1" "SettledBackupTests"

    "stale-last-row"
    "a gap is never silent: a backup does not know of rows that a failed settle has written"
    "Sources/StateSQLite/Settling/Settler.swift"
    's/gauges.lastRow.store(lastRow, ordering: .releasing)$/_ = lastRow/'
    "STATED_TEST=1" "SettledBackupTests"

    "late-unsettled"
    "a settle forgets what is synced while it runs"
    "Sources/StateSQLite/LogTail.swift"
    's/let unsynced = gauges.unsynced.load(ordering: .relaxed)$/let unsynced = 0/'
    "STATED_TEST=1" "SettledBackupTests"

    "reopen-forgets"
    "durable before acknowledged: a commit of unknown outcome takes away what handlers have noted"
    "Sources/StateEngine/Commits/MetadataTable.swift"
    's/for (name, text) in changed {/versions = versions.filter { $1.isPublished }; for (name, text) in changed {/'
    "STATED_TEST=1" "DeferredStoreTests"

    "seen-twice"
    "unique: what somebody has seen is in the log twice after a failed write"
    "Sources/StateLog/StateLog.swift"
    's/guard isPublished else {/guard isPublished, end < 0 else {/'
    "STATED_TEST=1" "StateLogTests"

    "head-unchecked"
    "bounded: bytes that a client wrote pass for the heads of frames, and a start reads what they say"
    "Sources/StateLog/Frame.swift"
    's/checksum == headChecksum(of: bytes, at: place, seed: seed)/checksum == checksum/'
    "STATED_TEST=1" "StateLogTests"

    # As root: they need other users.
    "hidden-pushed"
    "nobody learns what rules hide: a watch gets entries of other owners"
    "Sources/StateEngine/Watching/Watcher+Advancing.swift"
    's/visibility(of: subject).mayReveal(.watch, about: record)/visibility(of: subject).mayEverReveal(.watch, about: record.key)/'
    "STATED_TRACES=400" "NonInterferenceTests"

    "hidden-past"
    "nobody learns what rules hide: the history of a key has values of other owners"
    "Sources/StateServer/History/KeyHistoryJob.swift"
    's/view.mayReveal(.read, about: change) else { return 0 }/view.mayEverReveal(.read, about: change.key) else { return 0 }/'
    "STATED_TRACES=400" "NonInterferenceTests"

    "hidden-damage"
    "nobody learns what rules hide: the status names the key of a damaged row"
    "Sources/StateServer/Commands/ReportCommands.swift"
    's/guard report\[index\].1 != "ok" else { continue }/continue/; s/report\[index\].1 = "a problem that.*/_ = index/'
    "STATED_TEST=1" "RunningDamageTests"

    "hidden-counted"
    "nobody learns what rules hide: a check of the values counts hidden ones"
    "Sources/StateServer/Commands/RuleCommands.swift"
    's/if visibility.mayReveal(.read, about: record) { take(record, core) }/_ = visibility; take(record, core)/'
    "STATED_TRACES=400" "NonInterferenceTests"
)

# check_mutants: says of which mutants a file is as it was, without a build. What the source no longer has, none of them breaks.
check_mutants() {
    local index file stale=0 count=0
    for ((index = 0; index < ${#mutants[@]}; index += 6)); do
        ((count += 1))
        for file in ${mutants[index + 2]}; do
            if [[ ! -f $root/$file ]]; then
                printf '%s: %s does not exist\n' "${mutants[index]}" "$file" >&2
            elif sed "${mutants[index + 3]}" "$root/$file" | cmp -s - "$root/$file"; then
                printf '%s: nothing in %s matches: %s\n' \
                    "${mutants[index]}" "$file" "${mutants[index + 3]}" >&2
            else
                continue
            fi
            ((stale += 1))
        done
    done
    ((stale == 0)) || fail "$stale places of scripts/mutants.bash do not match the source"
    printf 'all %d mutants apply\n' "$count"
}

# run_mutants [NAMES]: each in a copy of the source that is built once; the original stays as it is. Without
# optimisation, a change of one file is built in seconds.
run_mutants() {
    local index caught=0 count=0 configuration=debug
    # Before the hours that the others take.
    check_mutants
    make_copy
    for ((index = 0; index < ${#mutants[@]}; index += 6)); do
        [[ -z $1 || " $1 " == *" ${mutants[index]} "* ]] || continue
        ((count += 1))
        if run_mutant "${mutants[@]:index:6}"; then ((caught += 1)); fi
    done
    ((count)) || fail "unknown mutants:$1"
    printf '%d of %d mutants were caught\n' "$caught" "$count"
    ((caught == count))
}

make_copy() {
    copy=$(mktemp -d)
    local path
    (cd "$root" && git ls-files -z --cached --others --exclude-standard) |
        while IFS= read -r -d '' path; do
            [[ ! -f $root/$path ]] || (cd "$root" && cp --parents "$path" "$copy")
        done
    build_tests "$copy"
}

# run_mutant NAME LAW FILES SED ENVIRONMENT FILTER: says whether the check failed as it has to.
run_mutant() {
    local file test
    for file in $3; do
        sed -i "$4" "$copy/$file"
        ! cmp -s "$copy/$file" "$root/$file" || fail "$1 changes nothing in $file"
    done
    local status=0
    # In a subshell: one that cannot be built ends none of the others.
    (build_tests "$copy") || {
        for file in $3; do cp "$root/$file" "$copy/$file"; done
        printf '%-18s cannot be built\n' "$1"
        return 1
    }
    run_check "$copy" "STATED_TEST_SEED=$((RANDOM << 15 | RANDOM))" "$5" "$6" || status=$?
    for file in $3; do cp "$root/$file" "$copy/$file"; done
    if ((status == 0)); then
        printf '%-18s %s\n                   NOT caught by %s\n' "$1" "$2" "$6"
        return 1
    fi
    test=$(sed -nE 's/.*✘ Test "([^"]*)".* recorded an issue.*/\1/p' "$report" | head -n 1)
    [[ -n $test ]] || test="the end of the process: $(failures | head -n 1 | cut -c 1-160)"
    printf '%-18s %s\n                   caught by: %s\n' "$1" "$2" "$test"
}
