import StateSystem

/// The proofs that nothing is missing.
extension MirrorStream {
    /// The node's own key has come in the stream: everything that the cluster had when it was set
    /// came before it.
    mutating func note(_ event: EtcdEvent) throws(LinkFailure) {
        stamp.beat = MirrorStamp.beat(event.isDelete ? nil : event.entry)
        guard let beat, event.entry.value == beat.value else { return }
        prove(SystemClock.monotonicMilliseconds() - beat.sentAt)
        self.beat = nil
        // The event may come before the answer.
        if writer?.isFull ?? false { throw .cluster("\(etcd.endpoint) has room again") }
    }

    mutating func beatIfDue() throws(LinkFailure) {
        let now = SystemClock.monotonicMilliseconds()
        if let proof {
            let (next, age) = try look(at: proof)
            self.proof = next
            if let age { prove(age) }
        }
        if let beat {
            if let status = beat.call.status, EtcdClient.refusal(status) != nil {
                return try askInstead()
            }
            if try etcd.answer(of: beat.call) != nil, writer?.isFull ?? false {
                throw .cluster("\(etcd.endpoint) has room again")
            }
            // A slow daemon keeps the stream back, not etcd.
            let since = max(beat.sentAt, etcd.lastReceivedAt)
            guard now - since < MirrorStream.patience || daemon.isFull else {
                throw .cluster("\(etcd.endpoint) does not answer")
            }
            return
        }
        guard now >= nextBeatAt else { return }
        let value = MirrorStream.randomValue()
        let call = try etcd.begin(.put, EtcdMessages.put(beatKey, value))
        beat = Beat(value: value, sentAt: now, call: call)
        nextBeatAt = now + MirrorStream.interval
    }

    /// A beat was refused, because etcd is full or this node may not write: nothing is missing either
    /// if no key was set since the last event, and there are as many as then.
    mutating func askInstead() throws(LinkFailure) {
        beat = nil
        guard proof == nil else { return }
        let end = EtcdMessages.end(of: position.prefix)
        let question = EtcdMessages.count(position.prefix, end: end)
        let call = try etcd.begin(.range, question)
        let now = SystemClock.monotonicMilliseconds()
        proof = Question(sentAt: now, seen: seenRevision, askedAt: now, call: call)
    }

    /// Looks whether a question is answered.
    ///
    /// - Returns: What is asked next, or how old the proof is; nothing if it proves nothing.
    func look(at proof: Question) throws(LinkFailure) -> (next: Question?, age: Int64?) {
        let now = SystemClock.monotonicMilliseconds()
        if let status = proof.call.status, status.code != 0, proof.count != nil {
            // What was then is compacted.
            return (nil, nil)
        }
        guard let answer = try etcd.answer(of: proof.call) else {
            guard now - proof.askedAt < MirrorStream.patience || daemon.isFull else {
                throw .cluster("\(etcd.endpoint) does not answer")
            }
            return (proof, nil)
        }
        let found: EtcdRange
        do throws(MalformedMessage) { found = try EtcdRange(answer[...]) } catch {
            throw .cluster("\(etcd.endpoint) has sent what cannot be read")
        }
        guard seenRevision == proof.seen else { return (nil, nil) }
        if let count = proof.count {
            return (nil, count == found.count ? now - proof.sentAt : nil)
        }
        guard found.entries.first?.modRevision ?? 0 <= seenRevision else { return (nil, nil) }
        let end = EtcdMessages.end(of: position.prefix)
        let question = EtcdMessages.count(position.prefix, end: end, revision: seenRevision)
        var next = proof
        (next.count, next.askedAt) = (found.count, now)
        next.call = try etcd.begin(.range, question)
        return (next, nil)
    }

    mutating func prove(_ age: Int64) {
        send(["STATE.MIRROR", "BEAT", "\(position.revision)", "\(age)", "\(filter.refused.count)"])
        provedCount += 1
    }
}
