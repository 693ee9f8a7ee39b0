import CLinux
import StateEngine

/// What ends in slices that are charged to its user: connections with much to take apart, and copies
/// of CLIENT TRACKING that are void.
///
/// Used only by the loop thread.
final class Leftovers {
    /// Those of one user.
    final class Pile {
        /// One of the connections that left them, whose user is charged.
        let connection: Connection
        /// Until when it rests if others are served, on the monotonic clock in nanoseconds: three times as
        /// long as its last slice took, and no longer, for what it frees is everybody's memory.
        fileprivate(set) var restEnd: Int64 = 0
        fileprivate var connections: [Connection] = []
        fileprivate var copies: [TrackedCopies] = []

        fileprivate init(_ connection: Connection) { self.connection = connection }
    }

    private let work: UnfinishedWork
    private var piles: [UInt32: Pile] = [:]

    init(_ work: UnfinishedWork) { self.work = work }

    /// A connection that is to end.
    func add(_ connection: Connection) { pile(of: connection).connections.append(connection) }

    /// Copies that are void.
    func add(_ copies: TrackedCopies, of connection: Connection) {
        pile(of: connection).copies.append(copies)
    }

    /// Any of the copies that are void.
    var anyCopies: TrackedCopies? {
        for pile in piles.values { if let copies = pile.copies.last { return copies } }
        return nil
    }

    private func pile(of connection: Connection) -> Pile {
        if let pile = piles[connection.peer.uid] { return pile }
        let pile = Pile(connection)
        piles[connection.peer.uid] = pile
        work.items.append(.leftovers(pile))
        return pile
    }

    /// Takes a part of a pile away, until `deadline` of the monotonic clock in nanoseconds.
    ///
    /// - Parameters:
    ///   - pile: The pile.
    ///   - deadline: When the slice ends.
    ///   - tracking: The table that has the copies.
    ///   - takeApart: Takes something of a connection away, or ends it; returns whether it has ended.
    func goOn(
        with pile: Pile,
        until deadline: Int64,
        _ tracking: Tracking,
        takeApart: (Connection) -> Bool
    ) {
        let start = clinux_monotonic_nanoseconds()
        defer {
            let now = clinux_monotonic_nanoseconds()
            pile.restEnd = now + 3 * (now - start)
            pile.connection.share.account?.nanoseconds += now - start
            if pile.connections.isEmpty, pile.copies.isEmpty {
                piles[pile.connection.peer.uid] = nil
            } else {
                work.items.append(.leftovers(pile))
            }
        }
        while let connection = pile.connections.last {
            if takeApart(connection) { pile.connections.removeLast() }
            if clinux_monotonic_nanoseconds() >= deadline { return }
        }
        while let copies = pile.copies.last {
            for _ in 0..<32 {
                guard let key = copies.lastKey else { break }
                tracking.remove(key, from: copies)
            }
            if copies.count == 0 { pile.copies.removeLast() }
            if clinux_monotonic_nanoseconds() >= deadline { return }
        }
    }
}
