import Glibc
import StateClient
import StateContainers
import StateEngine
import StateWire
import Synchronization

/// A change from process to process, compared with STATE.SET and its push to a plain client: one
/// daemon, alternating.
///
/// The value is the time at which its writer started, by a clock that all processes share.
enum RemoteRows {
    static let key: Key = "bench/container"
    static let plainKey = "bench/plain"
    private static let base = "STATE.SET and push, between processes, p50"
    /// How many changes of one kind are made in a row.
    private static let turnLength = 50

    static func measure(
        _ count: Int,
        in place: String,
        daemon program: String,
        _ table: inout LibraryTable
    ) throws(BenchError) {
        let daemon = try BenchDaemon(program, TemporaryPlace(in: place))
        defer { withExtendedLifetime(daemon) {} }
        let writer = try RemoteWriter(socket: daemon.socket)
        let plain = try PlainWatch(socket: daemon.socket)
        let container: ObservedContainer
        do {
            container = try ObservedContainer(socket: daemon.socket)
        } catch {
            throw .failed("\(error)")
        }
        let queues: [(StateQueue, String)] = [(.inline, "inline"), (.notifier, "on the notifier")]
        var times: [String: [Double]] = [:]
        for _ in 0..<max(1, count / turnLength) {
            times[base, default: []] += try writer.times(turnLength, .plain) {
                () throws(BenchError) in try plain.next()
            }
            for (queue, name) in queues {
                let observation = container.observe(on: queue)
                times["RemoteState, seen \(name), the same", default: []] += try writer.times(
                    turnLength,
                    .container
                ) { () throws(BenchError) in try container.next() }
                observation.cancel()
            }
        }
        for (title, times) in times.sorted(by: { $0.key > $1.key }) {
            // The plain row sorts first.
            table.add(
                title,
                times.median,
                beside: title == base ? nil : base,
                atMost: title == base ? nil : 1.5
            )
        }
    }
}

/// This command's own `stated`, which ends with this object.
private final class BenchDaemon {
    let socket: String
    private let place: TemporaryPlace
    private let pid: pid_t

    init(_ program: String, _ place: TemporaryPlace) throws(BenchError) {
        self.place = place
        socket = place.path + "/s"
        pid = try ProcessTable.start([program, "--socket", socket, "--data", place.path])
        let deadline = MonotonicClock.now + 20_000_000_000
        while !ReadyCommand.isAnswering(socket) {
            guard MonotonicClock.now < deadline, !ProcessTable.hasEnded(Int(pid)) else {
                throw .failed("'\(program)' does not answer")
            }
            MonotonicClock.pause(microseconds: 1_000)
        }
    }

    deinit {
        kill(pid, SIGTERM)
        _ = try? ProcessTable.end(of: pid)
    }
}

/// The writing process; it makes one change for each order.
private final class RemoteWriter {
    private let pid: pid_t
    private let orders: Int32

    init(socket: String) throws(BenchError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .system("pipe") }
        // The writer's own end is a copy, which it keeps.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        orders = ends[1]
        let command = ["/proc/self/exe", "remote-writer", "--socket", socket]
        pid = try ProcessTable.start(command, input: ends[0])
    }

    deinit {
        close(orders)
        _ = try? ProcessTable.end(of: pid)
    }

    /// Makes `count` changes, each when the one before has arrived.
    ///
    /// - Parameters:
    ///   - count: The number of changes.
    ///   - order: The kind of change.
    ///   - arrival: Waits for one, and returns how long it took.
    /// - Returns: The results of `arrival`.
    /// - Throws: An error if the writer is gone, and what `arrival` throws.
    func times(
        _ count: Int,
        _ order: RemoteWriterCommand.Order,
        _ arrival: () throws(BenchError) -> Double
    ) throws(BenchError) -> [Double] {
        var times: [Double] = []
        for _ in 0..<count {
            var byte = order.rawValue
            guard write(orders, &byte, 1) == 1 else { throw .system("write to the writer") }
            times.append(try arrival())
        }
        return times
    }
}

/// `statebench remote-writer`: writes the time for each byte of its input.
enum RemoteWriterCommand {
    enum Order: UInt8 {
        case plain = 0x70
        case container = 0x63
    }

    static func run(_ options: Options) throws(BenchError) {
        let socket = try options.text("socket")
        let plain = try Connection(socket: socket)
        do {
            let state = try RemoteState(
                0,
                key: RemoteRows.key,
                in: RemoteKeyspace(socket: socket)
            )
            var byte: UInt8 = 0
            while read(STDIN_FILENO, &byte, 1) == 1 {
                let now = Int(MonotonicClock.now)
                switch Order(rawValue: byte) {
                case .container: try state.modify(now)
                case .plain: _ = try plain.call("STATE.SET", RemoteRows.plainKey, "\(now)")
                case nil: throw BenchError.failed("unexpected order \(byte)")
                }
            }
        } catch {
            throw .failed("\(error)")
        }
    }
}

/// A plain client that watches one key.
private final class PlainWatch {
    private let connection: Connection

    init(socket: String) throws(BenchError) {
        connection = try Connection(socket: socket)
        _ = try connection.call("HELLO", "3")
        _ = try connection.call("STATE.WATCH", RemoteRows.plainKey)
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(connection.descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
    }

    /// Waits for the next change, and returns how long it took.
    func next() throws(BenchError) -> Double {
        while true {
            guard case .bytes = try connection.receive() else {
                throw .failed("the plain client got no change")
            }
            let now = MonotonicClock.now
            var time: Double?
            try connection.takeReplies { (bytes) throws(BenchError) in
                let rows = try Reply(whole: bytes).elements?.last?.elements
                let text = rows?.first?.elements?.last?.textValue
                if let start = text.flatMap({ UInt64($0) }) { time = Double(now - start) }
            }
            if let time { return time }
        }
    }
}

/// A container that gets the changes of another process.
private final class ObservedContainer: Sendable {
    private let state: RemoteState<Int>
    private let time = Mutex<Double?>(nil)
    private let arrived = BlockingSemaphore()

    init(socket: String) throws {
        state = try RemoteState(0, key: RemoteRows.key, in: RemoteKeyspace(socket: socket))
    }

    func observe(on queue: StateQueue) -> StateObservation {
        state.observe(on: queue, initial: false) { @Sendable [self] change in
            let time = Double(Int(MonotonicClock.now) - change.new)
            self.time.withLock { $0 = time }
            arrived.signal()
        }
    }

    /// Waits for the next change, and returns how long it took.
    func next() throws(BenchError) -> Double {
        arrived.wait(nanoseconds: 20_000_000_000)
        guard let time = time.withLock({ $0.take() }) else {
            throw .failed("the container got no change")
        }
        return time
    }
}
