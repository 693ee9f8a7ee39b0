import Glibc
import StateSystem
import Synchronization

/// Clients that each ask for a key at fixed times, or as soon as the last was answered.
///
/// With a rate, a request counts from when it should have been sent, so that what waits behind a
/// slow one is measured, too.
final class GetLoad {
    struct Sample {
        /// When it was sent, in nanoseconds since 1970.
        var start: Int64
        var nanoseconds: Int64
    }

    private let clients: [GetClient]

    /// Begins to ask.
    ///
    /// - Parameters:
    ///   - count: The clients.
    ///   - rate: Requests a second of all of them; 0: as many as are answered.
    ///   - keys: What they ask for.
    ///   - socket: Where.
    /// - Throws: ``Failure`` if one cannot connect.
    init(clients count: Int, rate: Int, keys: [String], _ socket: String) throws {
        let pause = rate == 0 ? 0 : Int64(count) * 1_000_000_000 / Int64(rate)
        let requests = keys.map { Wire.command(["GET", $0]) }
        let begin = wallNanoseconds()
        clients = try (0..<count).map { number in
            // Spread over the pause.
            let start = begin + pause * Int64(number) / Int64(count)
            return GetClient(try Wire(socket), requests, start, pause)
        }
    }

    /// Ends it.
    ///
    /// - Returns: All that were answered.
    /// - Throws: ``Failure`` if something else than a value was.
    func end() throws -> [Sample] { try clients.flatMap { try $0.end() } }
}

/// One of the clients, with a thread of its own.
private final class GetClient: @unchecked Sendable {
    private let wire: Wire
    private let requests: [[UInt8]]
    /// Between two requests, in nanoseconds; 0: none.
    private let pause: Int64
    private let isEnding = Atomic(false)
    private let thread = WorkerThread(name: "get")
    private var samples: [GetLoad.Sample] = []
    private var failure: (any Error)?

    init(_ wire: Wire, _ requests: [[UInt8]], _ start: Int64, _ pause: Int64) {
        (self.wire, self.requests, self.pause) = (wire, requests, pause)
        samples.reserveCapacity(200_000)
        thread.start { [self] in
            do { try ask(from: start) } catch { failure = error }
        }
    }

    func end() throws -> [GetLoad.Sample] {
        isEnding.store(true, ordering: .relaxed)
        thread.join()
        if let failure { throw failure }
        return samples
    }

    private func ask(from begin: Int64) throws {
        var (start, next) = (begin, 0)
        while !isEnding.load(ordering: .relaxed) {
            if pause > 0 { sleep(until: start) }
            next = (next + 7) % requests.count
            try wire.send(requests[next])
            repeat { try wire.receive() } while !wire.hasWholeValue
            guard !wire.isNull else { throw Failure("a key without a time is absent") }
            wire.forgetReceived()
            let end = wallNanoseconds()
            samples.append(GetLoad.Sample(start: start, nanoseconds: end - start))
            start = pause == 0 ? end : start + pause
        }
    }
}
