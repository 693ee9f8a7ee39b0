import StateModel
import StateWire

/// What the daemon's watches tell.
extension RemoteLoop {
    /// Looks at what was asked of a watch.
    func attend(to watch: WatchedKeys) {
        watches[ObjectIdentifier(watch)] = watch
        watch.reportRefusals()
        if let absence, session == nil { watch.reportAway(absence) }
        if watch.isOver { watches[ObjectIdentifier(watch)] = nil }
        advance(watch)
    }

    /// Begins the next round of a watch, unless one is under way.
    func advance(_ watch: WatchedKeys) {
        guard isReady, let session else { return }
        guard let round = watch.beginRound() else {
            if watch.isOver { watches[ObjectIdentifier(watch)] = nil }
            return
        }
        // Order matters: the old watch tells what happens until the new one takes its place, and that tells what happens after
        // the state of what is new; so there is neither a hole nor a repetition.
        if let next = round.next { begin(next, session) }
        if let old = round.old { end(old, session) }
        if let snapshot = round.snapshot { begin(snapshot, session) }
    }

    private func begin(_ wire: WireWatch, _ session: RemoteSession) {
        ask(wire.request, session) { [unowned self] (reply) throws(Loss) in
            if case .error(let error) = reply {
                wire.keys.refuse(wire, error)
            } else {
                do throws(StateError) {
                    let begun = try Client.watch(Fields(reply, of: "STATE.WATCH"))
                    guard let epoch = Epoch(begun.epoch) else {
                        throw Client.unexpected("STATE.WATCH")
                    }
                    wires[begun.number] = wire
                    let current = Revision(epoch: epoch, number: begun.revision)
                    wire.begin(number: begun.number, at: current)
                    wire.keys.noteBegun(wire, at: current)
                } catch {
                    throw .malformed(error.message)
                }
            }
            advance(wire.keys)
        }
    }

    private func end(_ wire: WireWatch, _ session: RemoteSession) {
        let number = wire.number
        var request = RequestWriter()
        request.append(words: "STATE.UNWATCH", String(number))
        ask(request, session) { [unowned self] (_) throws(Loss) in
            wires[number] = nil
            wire.keys.noteEnd(of: wire)
            advance(wire.keys)
        }
    }

    func take(push: Reply) throws(Loss) {
        do throws(StateError) {
            guard let event = try Client.event(push), let wire = wires[event.watch] else { return }
            let wasBusy = wire.isBusy
            if try wire.keys.take(event, from: wire), let session { end(wire, session) }
            if wasBusy, !wire.isBusy { advance(wire.keys) }
        } catch {
            throw .malformed(error.message)
        }
    }
}
