import Glibc
import StateTestSupport
import StateWire

/// Writes transactions, one after the other, on a thread of its own, whenever the writers may.
struct RunWriter {
    let number: Int
    let socketPath: String
    let board: RunBoard
    let pauseMilliseconds: Int
    private var random: SplitMix
    private var count = 0

    init(_ number: Int, _ plan: RunPlan, _ socketPath: String, _ board: RunBoard) {
        self.number = number
        self.socketPath = socketPath
        self.board = board
        pauseMilliseconds = plan.pauseMilliseconds
        random = SplitMix(seed: plan.seed &* 1_000 &+ UInt64(number))
    }

    /// Goes on until everything has been written.
    mutating func work() {
        var generation = 0
        do {
            while let open = nextGeneration(after: generation) {
                generation = open
                try write(in: open)
                board.stage.update { $0.parkedCount += 1 }
            }
        } catch {
            board.fail("writer \(number): \(error)")
        }
    }

    /// Waits until the writers may write again; nil where they never will.
    private func nextGeneration(after last: Int) -> Int? {
        let next = board.stage.take(seconds: 120) { stage -> Int? in
            if stage.fault != nil || stage.lastRevision != nil { return 0 }
            return stage.openGeneration > last ? stage.openGeneration : nil
        }
        if next == nil { board.fail("writer \(number): the writers may not write for 120 s") }
        return next == 0 ? nil : next
    }

    private mutating func write(in generation: Int) throws {
        var written: [RunBoard.Written] = []
        defer { board.add(written) }
        // Where the daemon has died again there is nothing to be written.
        guard let connection = try RunConnection(socketPath) else { return }
        while board.stage.current.openGeneration == generation {
            count += 1
            let transaction = WriterTransaction(named: "\(number).\(count)", &random)
            let after = board.revision
            guard let reply = try lastReply(to: transaction, connection) else {
                if !transaction.isRefused {
                    written.append(.init(transaction: transaction, revision: nil, after: after))
                }
                return
            }
            switch transaction.outcome(of: reply) {
            case .nothing: break
            case .unexpected(let sentence): throw SystemFailure(sentence)
            case .committed(let revision):
                board.note(transaction, at: revision)
                written.append(.init(transaction: transaction, revision: revision, after: after))
            }
            pause(milliseconds: Int.random(in: 0...pauseMilliseconds, using: &random))
        }
    }

    /// nil where the connection was lost before it.
    private func lastReply(
        to transaction: WriterTransaction,
        _ connection: RunConnection
    ) throws -> Reply? {
        let requests = transaction.requests
        guard connection.send(requests) else { return nil }
        var last: Reply?
        for _ in requests {
            switch try connection.next(within: 60_000) {
            case .reply(let reply): last = reply
            case .ended: return nil
            case .nothing: throw SystemFailure("no answer in 60 s")
            }
        }
        return last
    }
}

/// The runs are paced, and stall: their time is not that of any event.
func pause(milliseconds: Int) { poll(nil, 0, Int32(milliseconds)) }
