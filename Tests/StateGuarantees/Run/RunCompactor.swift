import StateTestSupport
import StateWire

/// Has the history compacted now and then, to somewhere short of the present, on a thread of its own.
struct RunCompactor {
    private let socketPath: String
    private let board: RunBoard
    private var random: SplitMix

    init(_ plan: RunPlan, _ socketPath: String, _ board: RunBoard) {
        self.socketPath = socketPath
        self.board = board
        random = SplitMix(seed: plan.seed &* 1_000 &+ 999)
    }

    /// Goes on until everything has been written.
    mutating func work() {
        var connection: RunConnection?
        do {
            while true {
                // What was answered before this pause has been taken by its writer: none of it is without an answer.
                let revision = board.revision
                pause(milliseconds: Int.random(in: 500...3_000, using: &random))
                let stage = board.stage.current
                if stage.fault != nil || stage.lastRevision != nil { return }
                guard revision > 0 else { continue }
                let lag = Int64.random(in: 0...400, using: &random)
                guard let asked = try connection ?? RunConnection(socketPath) else { continue }
                connection = try compact(to: revision - lag, asked) ? asked : nil
            }
        } catch {
            board.fail("the compactor: \(error)")
        }
    }

    /// - Returns: Whether the connection still stands.
    private func compact(to revision: Int64, _ connection: RunConnection) throws -> Bool {
        guard revision > board.compacted else { return true }
        board.noteCompaction(to: revision)
        let reply = try connection.ask(["STATE.COMPACT", "TO", "\(revision)"].bytes)
        if case .error(let error) = reply {
            throw SystemFailure("STATE.COMPACT TO \(revision): \(error)")
        }
        return reply != nil
    }
}
