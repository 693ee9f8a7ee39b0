import StateEngine
import StateWire

/// What a client has sent that is not answered: bytes that are no command yet, and the command that is being carried out.
struct Inbound: ~Copyable {
    var parser: FrameParser
    /// What came in and is not carried out.
    var bytes = ByteBuffer()
    /// Why no more commands are run for now.
    var pause: Pause?
    /// What came while its user rested.
    var postponedEvent: Poller.Event?
    /// The files that its next command waits for, and until when.
    var awaitedFiles: AwaitedFiles?
    /// The reply of its last command is to come: from a ``HistoryJob``, or where it is ``blocked``.
    var awaitsLateReply = false
    /// The command that lists in slices.
    var listing: ListingCommand?
    /// What is read from the history for it: for a command, and for a watch.
    var jobs: [any HistoryJob] = []
    /// The STATE.CHANGES that waits for a commit.
    var blocked: BlockedChanges?

    init(parser: consuming FrameParser) { self.parser = parser }

    enum Pause {
        /// What is not committed yet has reached its limit.
        case queueIsFull
        /// The client does not read.
        case outputIsFull
        /// The next command needs all replies before it to have gone.
        case repliesAreHeld
        /// The reply of the last command is to come.
        case replyIsLate
        /// Files of the keys that the next command writes may have been edited.
        case filesAreEdited
        /// Its slice is over: the others are served first.
        case turnIsOver
        /// Its user's clients have their share of memory, and there is little left.
        case memoryIsFull
    }
}
