import Glibc
import StateEngine
import StateServer

/// A line of the log, with its line feed; and the same as an entry of the journal.
struct LogLine: Sendable {
    var text: String
    var entry: [UInt8] = []

    fileprivate var byteCount: Int { text.utf8.count + entry.count }
}

/// Writes lines to the journal, or to a descriptor, on its own thread, so that the caller never waits for a slow
/// reader.
///
/// The descriptor may be shared with other processes, so it is not set to O_NONBLOCK, which would
/// affect them too. The queue is bounded: further lines are dropped, and a line in their place says
/// how many.
final class LineWriter: Sendable {
    private struct State {
        var lines: [LogLine] = []
        var first = 0
        var byteCount = 0
        /// Dropped lines that no line has reported yet.
        var dropped = 0
        var droppedCount = 0
        var hasThread = false
        var isWriting = false
        /// A thread waits until all is written.
        var isAwaited = false

        var isEmpty: Bool { first == lines.count }
    }

    private static let lineLimit = 1_000
    private static let byteLimit = 256 << 10

    private let descriptor: Int32
    /// Gets the entries; nil if there is no journal.
    private let journal: JournalSocket?
    private let state = StateLock(State())
    private let parking = BlockingSemaphore()
    private let written = BlockingSemaphore()
    private let thread = WorkerThread(name: "log")
    /// The line that says how many lines are missing.
    private let notice: @Sendable (Int) -> LogLine

    init(
        _ descriptor: Int32,
        _ journal: JournalSocket?,
        notice: @escaping @Sendable (Int) -> LogLine
    ) {
        (self.descriptor, self.journal) = (descriptor, journal)
        self.notice = notice
    }

    var droppedCount: Int { state.withLock { $0.droppedCount } }

    /// Queues a line, or drops it if the queue is full.
    func add(_ line: LogLine) {
        let (isAdded, needsThread) = state.withLock { state in
            let waiting = state.lines.count - state.first
            guard waiting < LineWriter.lineLimit, state.byteCount < LineWriter.byteLimit else {
                state.dropped += 1
                state.droppedCount += 1
                return (false, false)
            }
            if state.dropped > 0 { append(takeNotice(&state), &state) }
            append(line, &state)
            defer { state.hasThread = true }
            return (true, !state.hasThread)
        }
        if needsThread { start() }
        if isAdded { parking.signal() }
    }

    /// Waits until all lines are written, or the time has passed.
    func flush(nanoseconds: Int64) {
        let mustWait = state.withLock { state in
            state.isAwaited = !state.isEmpty || state.isWriting
            return state.isAwaited
        }
        if mustWait { written.wait(nanoseconds: nanoseconds) }
    }

    private func append(_ line: LogLine, _ state: inout State) {
        state.lines.append(line)
        state.byteCount += line.byteCount
    }

    private func takeNotice(_ state: inout State) -> LogLine {
        defer { state.dropped = 0 }
        return notice(state.dropped)
    }

    // MARK: On the thread

    /// Blocks all signals in the thread: it starts before the daemon has blocked those that it
    /// handles.
    private func start() {
        var (all, before) = (sigset_t(), sigset_t())
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, &before)
        thread.start { [self] in
            while true {
                parking.wait(nanoseconds: nil)
                while let line = next() { write(line) }
            }
        }
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    private func next() -> LogLine? {
        let (line, isDone) = state.withLock { state in
            state.isWriting = false
            if state.isEmpty, state.dropped > 0 { append(takeNotice(&state), &state) }
            guard !state.isEmpty else {
                state.lines.removeAll(keepingCapacity: true)
                state.first = 0
                defer { state.isAwaited = false }
                return (LogLine?.none, state.isAwaited)
            }
            let line = state.lines[state.first]
            state.lines[state.first] = LogLine(text: "")
            state.first += 1
            state.byteCount -= line.byteCount
            state.isWriting = true
            if state.first >= LineWriter.lineLimit {
                state.lines.removeFirst(state.first)
                state.first = 0
            }
            return (line, false)
        }
        if isDone { written.signal() }
        return line
    }

    private func write(_ line: LogLine) {
        if !line.entry.isEmpty, let journal, journal.send(line.entry) { return }
        write(line.text)
    }

    private func write(_ line: String) {
        var line = line
        line.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let count = Glibc.write(descriptor, part.baseAddress, part.count)
                if count > 0 {
                    rest = rest.dropFirst(count)
                } else if errno == EAGAIN {
                    // Another process made it non-blocking.
                    var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&room, 1, -1)
                } else if errno != EINTR {
                    // A log that cannot be written cannot report that.
                    return
                }
            }
        }
    }
}
