import StateEngine

/// What becomes of a reload that moves keys, and of keys that were written under one that is undone.
extension Server {
    /// Takes note of what became of the keys that a reload has moved; where storage refused them, what held before holds again.
    ///
    /// Where nobody knows, it is neither in force nor undone until the store is open again and tells.
    /// Called under the keyspace's lock.
    func settleReload(_ outcome: LocalKeyspace.Outcome) {
        guard let reloader else { return }
        settleMovingBack(outcome, reloader)
        guard let unsettled = reloader.unsettled else {
            // It had nothing to move, but what it stood on is undone: that may be stored where the rules keep it in memory.
            if case .failed(let revision, _) = outcome, revision < reloader.revision {
                reloader.movingBack = Reloader.MovingBack(due: SystemClock.monotonicMilliseconds())
            }
            return
        }
        let report = unsettled.report
        switch outcome {
        case .durable(let revision):
            if unsettled.doubt == nil, revision >= report.revision { end(reloader, report) }
        case .failed(let revision, let error):
            guard revision <= report.revision else { return }
            guard error.isOutcomeUnknown else { return undo(reloader, error) }
            reloader.unsettled?.doubt = error
            options.log(
                .error,
                "whether the configuration is reloaded is known once the store is open again"
            )
        case .reopened(_, let revision):
            guard let doubt = unsettled.doubt else { return }
            if revision >= report.revision {
                end(reloader, report)
            } else {
                undo(reloader, doubt)
            }
        case .unopened, .room: break
        }
    }

    private func end(_ reloader: Reloader, _ report: ReloadReport) {
        reloader.source.onMoved(report.movedKeyCount)
        reloader.source.onEnd(.success(report))
        reloader.unsettled = nil
        reloader.startNext()
    }

    private func undo(_ reloader: Reloader, _ error: StateError) {
        var changed = options
        reloader.source.undo(core, &changed)
        take(changed)
        dispatcher.accessChanged(core)
        reloader.source.onEnd(.failure(error))
        reloader.unsettled = nil
        reloader.movingBack = Reloader.MovingBack(due: SystemClock.monotonicMilliseconds())
        reloader.startNext()
    }

    // MARK: Keys that live elsewhere than the rules say

    /// How long there is nothing to move back; negative: for ever.
    var millisecondsToMovingBack: Int32 {
        guard let reloader, let moving = reloader.movingBack, moving.revision == 0,
            !reloader.isReading
        else { return -1 }
        return Int32(clamping: max(0, moving.due - SystemClock.monotonicMilliseconds()))
    }

    /// Moves what lives elsewhere than the rules say, once it is due: in the turn after the undoing, then after 1 s, 2 s and so on up
    /// to 30 s until storage takes it.
    func moveBack() {
        guard millisecondsToMovingBack == 0, let reloader else { return }
        keyspace.withCore { core in
            let cause = core.retainCause(.thisProcess)
            defer { core.release(cause) }
            do throws(StateError) {
                let count = try core.moveAstray(cause, at: dispatcher.now)
                if count == 0 {
                    reloader.movingBack = nil
                } else {
                    reloader.movingBack?.revision = core.revisions.newest
                    reloader.movingBack?.count = count
                }
            } catch {
                postponeMovingBack(reloader, error)
            }
        }
    }

    private func settleMovingBack(_ outcome: LocalKeyspace.Outcome, _ reloader: Reloader) {
        guard let moving = reloader.movingBack, moving.revision > 0 else { return }
        switch outcome {
        case .durable(let revision):
            guard revision >= moving.revision else { return }
            reloader.source.onMoved(moving.count)
            // There may be more than a transaction holds.
            reloader.movingBack = Reloader.MovingBack(due: SystemClock.monotonicMilliseconds())
        case .failed(let revision, let error):
            guard revision <= moving.revision else { return }
            postponeMovingBack(reloader, error)
        case .reopened, .unopened, .room: return
        }
        reloader.startNext()
    }

    private func postponeMovingBack(_ reloader: Reloader, _ error: StateError) {
        if reloader.movingBack?.isSaid == false {
            options.log(
                .warning,
                "keys that do not live where their rule says stay there until storage takes the move: "
                    + error.message
            )
        }
        let pause = reloader.movingBack?.pause ?? 1_000
        reloader.movingBack = Reloader.MovingBack(
            due: SystemClock.monotonicMilliseconds() + pause,
            pause: min(pause * 2, 30_000),
            isSaid: true
        )
    }
}
