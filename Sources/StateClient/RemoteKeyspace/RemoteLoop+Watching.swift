import StateModel
import StateWire

/// The events of the daemon's watches.
extension RemoteLoop {
    /// Processes the requests of a watch.
    func attend(to watch: WatchedKeys) {
        watches[ObjectIdentifier(watch)] = watch
        watch.reportRefusals()
        if let absence, session == nil { watch.reportAway(absence) }
        if watch.isOver { watches[ObjectIdentifier(watch)] = nil }
        advance(watch)
    }

    /// Starts the next round of a watch, unless one is in progress.
    func advance(_ watch: WatchedKeys) {
        guard isReady, let session else { return }
        guard let round = watch.beginRound() else {
            if watch.isOver { watches[ObjectIdentifier(watch)] = nil }
            return
        }
        // Order matters: the old watch delivers commits until the new one replaces it; the new one
        // delivers the commits after the state of the new patterns. So there is neither a gap nor a
        // repetition.
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
