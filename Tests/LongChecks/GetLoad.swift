import Glibc
import StateSystem
import Synchronization

/// Clients on one thread that each ask for a key at fixed times, or as soon as the last was answered.
///
/// With a rate, a request counts from when it should have been sent, so that what waits behind a
/// slow one is measured, too.
final class GetLoad: @unchecked Sendable {
    struct Sample {
        /// When it was sent, in nanoseconds since 1970.
        var start: Int64
        var nanoseconds: Int64
    }

    private let wires: [Wire]
    private let requests: [[UInt8]]
    /// Between two requests of a client, in nanoseconds; 0: none.
    private let pause: Int64
    private let isEnding = Atomic(false)
    private let thread = WorkerThread(name: "get")
    private var samples: [Sample] = []
    private var failure: (any Error)?

    /// Begins to ask.
    ///
    /// - Parameter rate: Requests a second of all clients; 0: as many as are answered.
    init(clients: Int, rate: Int, keys: [String], _ socket: String) throws {
        pause = rate == 0 ? 0 : Int64(clients) * 1_000_000_000 / Int64(rate)
        wires = try (0..<clients).map { _ in try Wire(socket) }
        requests = keys.map { Wire.command(["GET", $0]) }
        samples.reserveCapacity(2_000_000)
        thread.start { [self] in
            do { try ask() } catch { failure = error }
        }
    }

    /// Ends it.
    ///
    /// - Returns: All that were answered.
    func end() throws -> [Sample] {
        isEnding.store(true, ordering: .relaxed)
        thread.join()
        if let failure { throw failure }
        return samples
    }

    private func ask() throws {
        var waiting = wires.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        let begin = wallNanoseconds()
        // When the next request of each is due; the clients are spread over the pause.
        var starts = wires.indices.map { begin + pause * Int64($0) / Int64(wires.count) }
        var isAsking = wires.map { _ in false }
        var next = 0
        while !isEnding.load(ordering: .relaxed) {
            let now = wallNanoseconds()
            for index in wires.indices where !isAsking[index] && starts[index] <= now {
                next = (next + 7) % requests.count
                isAsking[index] = true
                try wires[index].send(requests[next])
            }
            var time = timespec(tv_sec: 0, tv_nsec: Int(GetLoad.patience(starts, isAsking, now)))
            ppoll(&waiting, UInt(waiting.count), &time, nil)
            for index in waiting.indices where waiting[index].revents != 0 {
                try wires[index].receive()
                guard wires[index].hasWholeValue else { continue }
                guard !wires[index].isNull else { throw Failure("a key without a time is absent") }
                wires[index].forgetReceived()
                let end = wallNanoseconds()
                samples.append(Sample(start: starts[index], nanoseconds: end - starts[index]))
                starts[index] = pause == 0 ? end : starts[index] + pause
                isAsking[index] = false
            }
        }
    }

    /// Nanoseconds until the next request is due, at most 100 ms.
    private static func patience(_ starts: [Int64], _ isAsking: [Bool], _ now: Int64) -> Int64 {
        var first = now + 100_000_000
        for index in starts.indices where !isAsking[index] { first = min(first, starts[index]) }
        return max(0, first - now)
    }
}
