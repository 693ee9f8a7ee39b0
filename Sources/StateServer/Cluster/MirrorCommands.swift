import CLinux
import StateEngine
import StateWire

/// STATE.MIRROR: the link of a cluster brings its changes.
///
/// The link is a process of its own, which knows the cluster and connects like any client. Each
/// commit of the cluster is one commit here, in the same order, with the position in the same
/// transaction: after a crash of either side it goes on there.
struct MirrorCommands {
    private let services: Services

    init(_ services: Services) { self.services = services }

    var mirror: Mirror? { services.mirror }

    /// How current a key is; nil if that is not to be said.
    func currency(of key: Bytes) -> Mirror.Currency? { services.mirror?.currency(of: key) }

    // Not inlined into the switch of the commands: code that a SET does not need.
    @inline(never)
    func run(_ step: Command.MirrorStep, _ context: inout CommandContext) throws(StateError) {
        guard let mirror = services.mirror else {
            throw StateError(
                .err,
                "no keys belong to a cluster: no rule has backing: \"cluster\""
            )
        }
        try requireLink(mirror, context)
        if case .begin = step { return try begin(mirror, &context) }
        guard mirror.link === context.connection else {
            // After a handover, or an error: a link need not wait then.
            throw mirror.link == nil
                ? StateError(.err, "STATE.MIRROR BEGIN comes first, also after an error")
                : StateError(.noPermission, "another link has begun")
        }
        do throws(StateError) {
            try run(step, mirror, &context)
        } catch {
            // What comes behind it on the connection would not follow on what is here.
            mirror.link = nil
            services.gate.cluster?.pause()
            throw error
        }
    }

    private func run(
        _ step: Command.MirrorStep,
        _ mirror: Mirror,
        _ context: inout CommandContext
    ) throws(StateError) {
        switch step {
        case .begin: break
        case .commit(let commit): try take(commit, mirror, &context)
        case .ready(let operationCount, let byteCount):
            services.gate.cluster?.begin(
                ClusterWrites.Bounds(operationCount: operationCount, byteCount: byteCount)
            )
            mirror.refusalOfChanges = nil
            context.output.writeOK()
        case .refusing(let code, let reason):
            let error = StateError(StateError.Code(code), String(reason.prefix(256).shown))
            mirror.refusalOfChanges = error
            services.gate.cluster?.refuseWaiting(error, context.core)
            context.output.writeOK()
        case .failed(let number, let code, let reason):
            // It comes from etcd, and is shown to the client.
            let error = StateError(StateError.Code(code), String(reason.prefix(256).shown))
            services.gate.cluster?.refuse(number, error, context.core)
            context.output.writeOK()
        case .beat(let revision, let age, let refusedCount):
            try prove(revision, age: age, mirror, &context)
            mirror.refusedCount = refusedCount
        case .away(let reason):
            // It comes from etcd, and is shown to all.
            mirror.note(String(reason.prefix(256).shown))
            services.gate.cluster?.pause()
            context.output.writeOK()
        case .resync(let history, let reason):
            mirror.comparison = MirrorComparison(history: history.text, reason: reason.text)
            context.output.writeOK()
        case .rows(let rows):
            if let shortage = context.core.admission.refusals.memoryShortage { throw shortage }
            try comparison(of: mirror).compare(rows, mirror.options.prefix, context.core)
            context.output.writeOK()
        case .synced(let revision, let stamp):
            try finish(comparison(of: mirror), revision, stamp, mirror, &context)
        }
    }

    private func requireLink(
        _ mirror: Mirror,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        guard context.connection.subject.isUser(mirror.options.user) else {
            throw StateError(
                .noPermission,
                "uid \(context.connection.peer.uid) is not the link of the cluster, which is uid "
                    + "\(mirror.options.user) (cluster.user in the configuration)"
            )
        }
        guard !context.isExecuting else {
            throw StateError(.err, "STATE.MIRROR is not allowed inside MULTI")
        }
    }

    private func comparison(of mirror: Mirror) throws(StateError) -> MirrorComparison {
        if let comparison = mirror.comparison { return comparison }
        throw StateError(.conflict, "no comparison was begun: STATE.MIRROR RESYNC comes first")
    }

    private func begin(
        _ mirror: Mirror,
        _ context: inout CommandContext
    ) throws(StateError) {
        if mirror.link !== context.connection {
            mirror.note("the link has connected, and nothing has come yet")
        }
        mirror.link = context.connection
        context.connection.places.isFlushedLast = true
        mirror.comparison = nil
        mirror.refusalOfChanges = nil
        services.gate.cluster?.pause()
        let peer = context.connection.peer
        if context.connection.session.cause == nil {
            context.connection.session.cause = context.core.retainCause(
                Cause(uid: peer.uid, gid: peer.gid, pid: 0, command: "etcd")
            )
        }
        let position = context.position(of: mirror)
        mirror.revision = position.revision
        let limits = services.settings.options.frameLimits
        context.output.writeMap(7, context.version)
        context.output.writeBulk("prefix")
        context.output.writeBulk(mirror.options.prefix.bytes)
        context.output.writeField("node", mirror.options.node)
        context.output.writeField("history", position.history)
        context.output.writeField("revision", position.revision)
        context.output.writeField("stamp", position.stamp)
        context.output.writeField(
            "value_bytes",
            Int64(services.settings.options.limits.valueByteCount)
        )
        context.output.writeField("command_bytes", Int64(limits.commandByteCount))
    }

    /// Takes a proof, once the position that it is about is on stable storage.
    private func prove(
        _ revision: Int64,
        age: Int64,
        _ mirror: Mirror,
        _ context: inout CommandContext
    ) throws(StateError) {
        let position = context.position(of: mirror)
        guard !position.history.isEmpty, position.revision == revision else {
            throw StateError(
                .conflict,
                "the proof is of revision \(revision) of the cluster, and here it is at "
                    + "\(position.revision)"
            )
        }
        mirror.take(proofAged: age, dependingOn: context.receipt.revision)
        if mirror.settle(through: context.core.revisions.durable) {
            services.noteMirror(mirror, context.core)
        }
        context.output.writeOK()
    }

    private func take(
        _ commit: Command.MirrorCommit,
        _ mirror: Mirror,
        _ context: inout CommandContext
    ) throws(StateError) {
        var position = context.position(of: mirror)
        guard !position.history.isEmpty, position.revision == commit.after,
            commit.revision > commit.after
        else {
            throw StateError(
                .conflict,
                "revision \(commit.revision) of the cluster comes after \(commit.after), and here "
                    + "it is at \(position.revision)"
            )
        }
        for change in commit.changes { try requireOrder(of: change, mirror, context.core) }
        (position.revision, position.stamp) = (commit.revision, commit.stamp.text)
        let text = mirror.text(of: position)
        let (core, cause) = (context.core, context.cause)
        var decision = ClusterDecision(
            commit.changes,
            signedBy: commit.writers,
            mirror,
            services.gate.cluster?.batch,
            at: context.time
        )
        let here: Int64
        do throws(StateError) {
            here = try context.write(waitingFor: .storage) { (transaction) throws(StateError) in
                // First, for it counts against the limits of a transaction, which the changes may
                // exceed.
                let name = MirrorPosition.metadataName
                try transaction.setMetadata(name, to: text, isDeferrable: true)
                try decision.make(&transaction, core, by: cause)
                return transaction.revision
            }
        } catch {
            decision.undo(core)
            services.channels.dropPostponed()
            throw error
        }
        mirror.revision = commit.revision
        context.output.writeOK()
        if let writes = services.gate.cluster {
            decision.answer(behind: here, context.receipt, core, writes)
        }
    }

    /// Each change must follow on what is here: else one is missing.
    private func requireOrder(
        of change: Command.MirrorChange,
        _ mirror: Mirror,
        _ core: KeyspaceCore
    ) throws(StateError) {
        guard mirror.options.prefix.holds(change.key) else {
            throw MirrorComparison.isForeign(change.key)
        }
        guard change.follows else { return }
        let known = core.mirroredVersion(of: change.key)
        if change.value == nil ? known > 0 : known == change.version - 1 { return }
        let what = change.value == nil ? "its deletion" : "version \(change.version)"
        throw StateError(
            .conflict,
            "\(what) of key \(StateError.quoted(change.key)) does not follow on version \(known), which is here"
        )
    }

    private func finish(
        _ comparison: MirrorComparison,
        _ revision: Int64,
        _ stamp: Bytes,
        _ mirror: Mirror,
        _ context: inout CommandContext
    ) throws(StateError) {
        mirror.comparison = nil
        comparison.finish(context.core)
        var position = context.position(of: mirror)
        if position.history.isEmpty, comparison.presentCount > 0 {
            throw foreignKeys(comparison, mirror)
        }
        position.history = comparison.history
        (position.revision, position.stamp) = (revision, stamp.text)
        let text = mirror.text(of: position)
        try context.write(waitingFor: .storage) { (transaction) throws(StateError) in
            try transaction.setMetadata(MirrorPosition.metadataName, to: text)
            for change in comparison.changes {
                try change.key.withBorrowed { (key) throws(StateError) in
                    guard let value = change.value else {
                        return try transaction.mirror(key, nil, version: 0)
                    }
                    try value.withBorrowed { (value) throws(StateError) in
                        try transaction.mirror(
                            key,
                            value,
                            version: change.version,
                            expires: change.expires
                        )
                    }
                }
            }
        }
        mirror.revision = revision
        // What came between was not seen.
        services.gate.cluster?.lose(context.core)
        services.settings.options.log(
            .notice,
            .clusterCompared,
            "compared with the cluster at its revision \(revision): "
                + "\(comparison.changes.count) keys differed (\(comparison.reason))"
        )
        context.output.writeOK()
    }

    /// Before the first comparison the keys here are not copies, and would be lost.
    private func foreignKeys(_ comparison: MirrorComparison, _ mirror: Mirror) -> StateError {
        let prefix = mirror.options.prefix.bytes.withUnsafeBytes { StateError.quoted($0) }
        return StateError(
            .rejected,
            "\(comparison.presentCount) keys below \(prefix) are not what the cluster has, and would "
                + "be replaced or deleted: remove the rule with backing: \"cluster\", then "
                + "statectl export and statectl delete these keys, and add the rule again"
        )
    }
}

extension CommandContext {
    /// How far the copy of a cluster is.
    mutating func position(of mirror: Mirror) -> MirrorPosition {
        mirror.position(of: core.metadataText(MirrorPosition.metadataName, &receipt))
    }
}
