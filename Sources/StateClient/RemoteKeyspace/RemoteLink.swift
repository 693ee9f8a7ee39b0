import CLinux
import StateModel
import StatePlatform
import StateSystem

/// The meeting point of callers' threads and the connection's thread.
///
/// Shared state is under the lock, the rest constant. Nothing is called under the lock.
final class RemoteLink: Sendable {
    /// How many requests may wait or be in flight; more are refused.
    static let callLimit = 65_536
    /// How many bytes they may have: as many as the daemon accepts in one command.
    static let byteLimit = 128 << 20

    /// The error of every request after the keyspace is closed.
    static let closed = StateError(.unreachable, "the keyspace is closed")

    let socket: String?
    let name: String
    let timeout: Duration
    let wakeup: Wakeup
    private let worker = WorkerThread(name: "state-remote")
    private let shared = StateLock(Shared())

    /// Whether requests can be sent.
    enum Status: Sendable {
        /// Not known yet: the first attempt is in progress.
        case unknown
        case connected
        case away(StateError)
        case closed

        /// Why there is no connection, if known.
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
        /// How many references there are: the keyspace and its watches.
        var userCount = 1
        var work = Work()
        var isWoken = false
        var callCount = 0
        var callByteCount = 0
        var thread: UInt?
    }

    /// Work for the connection's thread.
    struct Work: Sendable {
        var calls: [RemoteCall] = []
        var watches: [ObjectIdentifier: WatchedKeys] = [:]
        /// Whether the thread must end at once.
        var isClosing = false
        /// Whether nobody retains the keyspace or a watch of it.
        var isReleased = false
        /// Whether some key lives as long as the connection: then the next one claims it.
        var needsClaim = false
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
            self.shared.withLock { $0.thread = clinux_current_thread() }
            RemoteLoop(self).run()
            // The system reuses thread ids.
            self.shared.withLock { $0.thread = nil }
        }
    }

    // MARK: Callers

    var epoch: Epoch { shared.withLock { $0.epoch } }

    var isClosed: Bool {
        shared.withLock { if case .closed = $0.status { true } else { false } }
    }

    /// Ends the process if the connection's thread is about to wait for itself.
    func checkMayWait() {
        let isOnLoopThread = shared.withLock { shared in
            shared.thread == clinux_current_thread()
        }
        // Unlike a precondition, it prints its message in release builds too.
        guard !isOnLoopThread else {
            fatalError(
                "a completion or receiver of a RemoteKeyspace must not wait for it on its thread"
            )
        }
    }

    /// Queues a request, or refuses it.
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

    /// Makes the thread process the requests of a watch.
    func attend(to watch: WatchedKeys) {
        wake { $0.work.watches[ObjectIdentifier(watch)] = watch }
        if isClosed { watch.reportAway(Self.closed) }
    }

    /// A key is about to be set that lives as long as the connection.
    func noteLifetime() { shared.withLock { $0.work.needsClaim = true } }

    func retain() { shared.withLock { $0.userCount += 1 } }

    /// Releases one reference.
    ///
    /// After the last one, the thread ends once no request needs an answer.
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

    /// Takes the work that has arrived since the last call.
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

    /// Records whether requests can be sent; a closed keyspace stays closed.
    func note(_ status: Status, epoch: Epoch? = nil) {
        shared.withLock { shared in
            if let epoch { shared.epoch = epoch }
            if case .closed = shared.status { return }
            shared.status = status
        }
    }

    /// Frees the place of a call.
    func forget(byteCount: Int) {
        shared.withLock { shared in
            shared.callCount -= 1
            shared.callByteCount -= byteCount
        }
    }
}

extension RemoteLink.Shared {
    /// Whether the thread must be woken: it was not woken since it last took its work.
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
