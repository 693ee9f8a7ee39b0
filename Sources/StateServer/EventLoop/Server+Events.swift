import CLinux
import StateEngine
import Synchronization

/// Events of descriptors, and the order in which they are handled.
extension Server {
    func collectEvents(nanoseconds: Int64) {
        // Events for which a turn had no time join the new ones.
        let leftCount = unfinished.events.count
        poller.wait(nanoseconds: nanoseconds) { event in
            switch event.token & 3 {
            case Token.wakeup: turn.reasons.formUnion(wakeup.take())
            case Token.signals: take(signal: clinux_read_signal(signals.descriptor))
            default: unfinished.events.append(event)
            }
        }
        if leftCount > 0, unfinished.events.count > leftCount { mergeEvents(from: leftCount) }
    }

    /// Merges two events of the same descriptor into the first.
    private func mergeEvents(from start: Int) {
        let new = unfinished.events[start...]
        unfinished.events.removeSubrange(start...)
        var places: [UInt64: Int] = [:]
        for (index, event) in unfinished.events.enumerated() { places[event.token] = index }
        for event in new {
            if let place = places[event.token] {
                unfinished.events[place].merge(event)
            } else {
                unfinished.events.append(event)
            }
        }
    }

    /// Sorts the events in the order in which they would end if users shared the turn equally, by
    /// the recent cost of their events.
    ///
    /// So a burst of long events does not delay short ones of others. Events that waited for a turn
    /// come first.
    func orderEvents() {
        var taken: [UInt32: Int64] = [:]
        let ordered = unfinished.events.enumerated().map { index, event in
            // New clients come last.
            var due = Server.eventNanoseconds
            var used: Int64 = 0
            if let account = connection(of: event)?.share.account {
                due = taken[account.uid] ?? 0
                due += min(account.eventNanoseconds, Server.eventNanoseconds)
                taken[account.uid] = due
                used = account.nanoseconds
            }
            due -= event.turnsWaited * Server.eventNanoseconds
            return (event, due: due, used: used, index)
        }
        unfinished.events = ordered.sorted { ($0.due, $0.used, $0.3) < ($1.due, $1.used, $1.3) }
            .map(\.0)
    }

    func connection(of event: Poller.Event) -> Connection? {
        guard event.token & 3 == Token.connection else { return nil }
        return registry.all[Int(event.token >> 2)]
    }

    func handle(_ event: Poller.Event) {
        let number = Int(event.token >> 2)
        if event.token & 3 == Token.listener {
            accept(from: Int32(number))
            return
        }
        guard let connection = registry.all[number] else { return }
        if event.isReadable { history.thread?.activity.wrappingAdd(1, ordering: .relaxed) }
        // A client that has left may have sent commands before: they are read first, if possible.
        let mayRead = event.isReadable && connection.inbound.pause == nil && !connection.isEnding
        if event.isHungUp, !mayRead {
            // Its commands run first; then the event comes again.
            if connection.inbound.pause != .turnIsOver { end(connection) }
        } else {
            if event.isWritable { flushes.add(connection) }
            if event.isReadable { receive(connection, hasEnded: event.hasEnded) }
        }
    }
}

extension Poller.Event {
    /// Adds the conditions of a later event of the same descriptor.
    mutating func merge(_ event: Poller.Event) {
        isReadable = isReadable || event.isReadable
        isWritable = isWritable || event.isWritable
        isHungUp = isHungUp || event.isHungUp
        hasEnded = hasEnded || event.hasEnded
    }
}
