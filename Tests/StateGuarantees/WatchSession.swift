/// What one watcher asked for and was told, from a STATE.WATCH until it left or the connection was lost.
package struct WatchSession: Sendable {
    /// Where a watch begins.
    package enum Start: Hashable, Sendable {
        /// At the revision that the reply tells.
        case now
        /// With the state, in pieces.
        case snapshot
        /// After a revision; an epoch is named where the watcher sent one.
        case from(Int64, epoch: String? = nil)
    }

    /// STATE.WATCH, or STATE.CHANGES again and again.
    package struct Request: Hashable, Sendable {
        package var patterns: [WatchPattern]
        package var start = Start.now
        package var isLatest = false
        package var includesPrevious = false
        /// Whether it is STATE.CHANGES.
        package var isPolled = false

        package init(
            _ patterns: [WatchPattern],
            _ start: Start = .now,
            isLatest: Bool = false,
            includesPrevious: Bool = false
        ) {
            self.patterns = patterns
            self.start = start
            self.isLatest = isLatest
            self.includesPrevious = includesPrevious
        }
    }

    /// The reply to it.
    package struct Reply: Hashable, Sendable {
        /// The durable revision at the moment of the reply.
        package var revision: Int64
        package var epoch: String

        package init(revision: Int64, epoch: String) {
            self.revision = revision
            self.epoch = epoch
        }
    }

    /// The value that a change replaced.
    package enum Previous: Hashable, Sendable {
        /// Nobody asked for it.
        case untold
        case absent
        case value(String)
    }

    /// One key of a `state.change`.
    package struct Change: Hashable, Sendable {
        package var key: String
        package var value: String?
        package var previous = Previous.untold

        package init(_ key: String, _ value: String?, previous: Previous = .untold) {
            self.key = key
            self.value = value
            self.previous = previous
        }
    }

    /// One key of a `state.change` at revision 0.
    package struct Piece: Hashable, Sendable {
        package var key: String
        package var value: String?
        package var revision: Int64

        package init(_ key: String, _ value: String?, _ revision: Int64) {
            self.key = key
            self.value = value
            self.revision = revision
        }
    }

    /// What the watcher was told.
    package enum Event: Hashable, Sendable {
        case change(Int64, [Change])
        case pieces([Piece])
        case synced(Int64)
        /// With the highest revision to which anybody had asked the history to be compacted when it arrived.
        case gap(Int64, compacted: Int64 = 0)
        case progress(Int64)
    }

    /// How it ended.
    package enum End: Hashable, Sendable {
        /// The watcher went away, or the connection was lost.
        case left
        /// The watcher waited for a commit of this revision or a later one, longer than anything takes.
        case silent(Int64)
    }

    /// The number of the watcher in its run.
    package var watcher: Int
    /// How many sessions it had before this one.
    package var number: Int
    package var request: Request
    /// The epoch of the store all the while.
    package var epoch: String
    /// nil where the connection was lost before it.
    package var reply: Reply?
    package var events: [Event]
    package var end: End

    /// Makes a session, one that is over or one that begins.
    package init(
        watcher: Int = 0,
        number: Int = 0,
        _ request: Request,
        epoch: String = "e",
        reply: Reply? = nil,
        _ events: [Event] = [],
        end: End = .left
    ) {
        self.watcher = watcher
        self.number = number
        self.request = request
        self.epoch = epoch
        self.reply = reply
        self.events = events
        self.end = end
    }
}
