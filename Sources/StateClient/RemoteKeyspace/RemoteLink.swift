import Glibc
import StateModel
import StateSystem

/// Where callers' threads and the thread of a connection meet.
///
/// What is shared is under the lock, the rest constant. Nothing is called out under the lock.
final class RemoteLink: Sendable {
    /// Requests that wait or are under way at most; more are refused.
    static let callLimit = 65_536
    /// Bytes of these at most: what the daemon takes in one command.
    static let byteLimit = 128 << 20

    /// What every request is refused with once it is closed.
    static let closed = StateError(.unreachable, "the keyspace is closed")

    let socket: String?
    let name: String
    let timeout: Duration
    let wakeup: Wakeup
    private let worker = WorkerThread(name: "state-remote")
    private let shared = StateLock(Shared())

    /// Whether requests can be sent.
    enum Status: Sendable {
        /// Nobody knows yet: the first attempt is under way.
        case unknown
        case connected
        case away(StateError)
        case closed

        /// Why there is no connection, where that is known.
        var error: StateError? {
            switch self {
            case .unknown, .connected: nil
            case .away(let error): error
            case .closed: RemoteLink.closed
            }
        }
    }

    fileprivate struct Shared {
        var status = Status.unknown
        var epoch = Epoch(bits: 0)
        /// The keyspace and the watches that somebody holds.
        var userCount = 1
        var work = Work()
        var isWoken = false
        var callCount = 0
        var callByteCount = 0
        var thread: pthread_t?
    }

    /// What was asked of the connection's thread.
    struct Work: Sendable {
        var calls: [RemoteCall] = []
        var watches: [ObjectIdentifier: WatchedKeys] = [:]
        /// Everything is to end at once.
        var isClosing = false
        /// Nobody holds the keyspace or a watch of it.
        var isReleased = false
    }

    init(socket: String?, name: String, timeout: Duration) throws(StateError) {
        guard let wakeup = Wakeup() else {
            throw StateError(.limit, "eventfd: \(String(cString: strerror(errno)))")
        }
        self.wakeup = wakeup
        self.socket = socket
        self.name = name
        self.timeout = timeout
    }

    func start() {
        worker.start {
            self.shared.withLock { $0.thread = pthread_self() }
            RemoteLoop(self).run()
            // The system gives the number out again.
            self.shared.withLock { $0.thread = nil }
        }
    }

    // MARK: Callers

    var epoch: Epoch { shared.withLock { $0.epoch } }

    var isClosed: Bool {
        shared.withLock { if case .closed = $0.status { true } else { false } }
    }

    /// Ends the process where the connection's thread is about to wait for itself.
    func checkMayWait() {
        let isOnLoopThread = shared.withLock { shared in
            shared.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false
        }
        // Unlike a precondition's, its words come in a release, too.
        guard !isOnLoopThread else {
            fatalError(
                "a completion or a receiver of a RemoteKeyspace waits for it, whose thread it holds"
            )
        }
    }

    /// Hands a request over, or refuses it.
    func submit(_ call: RemoteCall) {
        let (refusal, wakes) = shared.withLock { shared -> (StateError?, Bool) in
            if let refusal = shared.refusal(of: call) { return (refusal, false) }
            shared.callCount += 1
            shared.callByteCount += call.request.count
            shared.work.calls.append(call)
            return (nil, shared.wake())
        }
        if let refusal { call.finish(.failure(refusal)) }
        if wakes { wakeup.signal() }
    }

    /// Has the thread look at what a watch asks for.
    func attend(to watch: WatchedKeys) {
        wake { $0.work.watches[ObjectIdentifier(watch)] = watch }
        if isClosed { watch.reportAway(Self.closed) }
    }

    func retain() { shared.withLock { $0.userCount += 1 } }

    /// Somebody who holds it goes; with the last one the thread ends once it has nothing to answer.
    func release() {
        var isLast = false
        wake {
            $0.userCount -= 1
            isLast = $0.userCount == 0
        }
        if isLast { worker.detach() }
    }

    func close() {
        checkMayWait()
        wake {
            $0.status = .closed
            $0.work.isClosing = true
        }
        worker.join()
    }

    private func wake(_ body: (inout Shared) -> Void) {
        let wakes = shared.withLock { shared in
            body(&shared)
            return shared.wake()
        }
        if wakes { wakeup.signal() }
    }

    // MARK: The connection's thread

    /// What was asked since the last time.
    func takeWork() -> Work {
        shared.withLock { shared in
            shared.isWoken = false
            defer {
                shared.work.calls = []
                shared.work.watches = [:]
            }
            shared.work.isReleased = shared.userCount == 0
            return shared.work
        }
    }

    /// Says whether requests can be sent; a keyspace that is closed stays so.
    func note(_ status: Status, epoch: Epoch? = nil) {
        shared.withLock { shared in
            if let epoch { shared.epoch = epoch }
            if case .closed = shared.status { return }
            shared.status = status
        }
    }

    /// The place of a call is free again.
    func forget(byteCount: Int) {
        shared.withLock { shared in
            shared.callCount -= 1
            shared.callByteCount -= byteCount
        }
    }
}

extension RemoteLink.Shared {
    /// Whether the thread has to be woken: it was not since it last took its work.
    fileprivate mutating func wake() -> Bool {
        defer { isWoken = true }
        return !isWoken
    }

    fileprivate func refusal(of call: RemoteCall) -> StateError? {
        if let error = status.error {
            if case .closed = status { return error }
            if call.patience == nil { return error }
        }
        if callCount >= RemoteLink.callLimit {
            return StateError(
                .limit,
                "\(callCount) requests wait for the daemon already; the limit is "
                    + "\(RemoteLink.callLimit)"
            )
        }
        let byteCount = callByteCount + call.request.count
        guard byteCount > RemoteLink.byteLimit else { return nil }
        return StateError(
            call.request.count > RemoteLink.byteLimit ? .tooBig : .limit,
            "requests that wait for the daemon would have \(byteCount) bytes; the limit is "
                + "\(RemoteLink.byteLimit)"
        )
    }
}
