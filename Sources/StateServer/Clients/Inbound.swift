import StateEngine
import StateWire

/// A client's input without a reply: bytes of incomplete commands, and the command that is being
/// executed.
struct Inbound: ~Copyable {
    var parser: FrameParser
    /// Input that is not executed yet.
    var bytes = ByteBuffer()
    /// Why no more commands are run for now.
    var pause: Pause?
    /// An event that came while its user rested.
    var postponedEvent: Poller.Event?
    /// The files for which its next command waits, and until when.
    var awaitedFiles: AwaitedFiles?
    /// The revision that must be durable before its next command, which looks back; 0 for none.
    var awaitedRevision: Int64 = 0
    /// The reply of its last command comes later: from a ``HistoryJob``, or when ``blocked`` ends.
    var awaitsLateReply = false
    /// The bytes of its last command, while a cluster decides about it.
    var offeredByteCount = 0
    /// The command that lists in slices.
    var listing: ListingCommand?
    /// The reads of the history for it: for a command, and for a watch.
    var jobs: [any HistoryJob] = []
    /// The STATE.CHANGES that waits for a commit.
    var blocked: BlockedChanges?

    init(parser: consuming FrameParser) { self.parser = parser }

    enum Pause {
        /// The changes that are not committed yet have reached their limit.
        case queueIsFull
        /// The client does not read.
        case outputIsFull
        /// The next command needs all earlier replies to be sent.
        case repliesAreHeld
        /// The history does not have every acknowledged change yet.
        case commitsAreOnTheirWay
        /// The reply of the last command comes later.
        case replyIsLate
        /// Files of the keys that the next command writes may have been edited.
        case filesAreEdited
        /// Its slice is over: other clients are served first.
        case turnIsOver
        /// The clients of its user have used their share of memory, and little is left.
        case memoryIsFull
        /// An administrator has paused clients.
        case clientsArePaused
        /// The next process goes on with it.
        case daemonStops
    }
}
