import Glibc
import StateClient
import StateStore

extension Example {
    static let sharedBudget = Example(
        name: "budget-shared",
        summary: "two processes pay from one budget, and never overdraw it",
        needs: .secondProcess
    ) { checks in
        let meeting = try await Meeting("examples/budget-shared")
        let state = try await RemoteState(
            Budget(name: "Shared", limit: 100),
            key: meeting.key("budget")
        )
        let (account, process) = (Account(state: state), getpid())
        try await meeting.reach(1)
        var (paid, refused) = (0, 0)
        for number in 1...80 {
            do throws(StateError) {
                try account.pay(1, for: "number \(number)", by: process)
                paid += 1
            } catch {
                guard error.code == .rejected else { throw error }
                refused += 1
            }
        }
        try await meeting.reach(2)
        let budget = state.value
        print("  \(paid) paid, \(refused) refused here; \(budget.spent) of \(budget.limit) in all")
        checks.expect(budget.spent == 100, "of two times 80 payments 100 were made")
        checks.expect(paid + refused == 80, "each of our payments was made or refused")
        checks.expect(
            budget.payments.filter { $0.process == process }.map(\.text)
                == (1...paid).map { "number \($0)" },
            "our payments are there once, in our order"
        )
        try meeting.leave()
    }

    static let sharedQBChat = Example(
        name: "redux-qbchat-shared",
        summary: "Redux over the daemon: two processes, one state of the app",
        needs: .secondProcess
    ) { checks in
        let meeting = try await Meeting("examples/qbchat-shared")
        let state = try await RemoteState(QBChat.AppState(), key: meeting.key("state"))
        let store = Store(state, reducer: QBChat.reducer)
        let me = Int(getpid())
        let peer = try await meeting.reach(1)
        let causes = StateLock<Set<Cause>>([])
        let observation = state.observe(on: .inline, initial: false) { change in
            _ = causes.withLock { $0.insert(change.cause) }
        }
        try await meeting.reach(2)
        for number in 1...50 {
            let line = QBChat.Line(chat: me, text: "\(number)")
            try await store.send(.detail(.receive(line))).settled()
        }
        for await state in store.stateStream where state.detail.lines.count == 100 { break }
        observation.cancel()
        for who in [me, peer] {
            checks.expect(
                store.detail.lines.filter { $0.chat == who }.map(\.text)
                    == (1...50).map { "\($0)" },
                "the 50 lines of process \(who == me ? "one" : "two") are there, in their order"
            )
        }
        let seen = causes.withLock { $0 }
        checks.expect(
            seen.contains { $0.pid == me && $0.reason == "detail.receive" },
            "our changes name the message"
        )
        checks.expect(seen.contains { $0.pid == peer }, "the other's changes name its process")
        try await meeting.reach(3)
        try meeting.leave()
    }
}

/// A place where two processes of the same example wait for each other.
private struct Meeting: Sendable {
    private let place: String
    private let me = Int(getpid())
    /// The step of each process.
    private let progress: RemoteState<[Int: Int]>

    init(_ place: String) async throws {
        self.place = place
        progress = try await RemoteState([:], key: Key("\(place)/progress"))
        // Processes of an earlier run that ended early.
        let gone = progress.value.keys.filter { kill(pid_t($0), 0) != 0 }
        try await progress.modify { [me] progress in
            for process in gone { progress[process] = nil }
            progress[me] = 0
        }
    }

    /// A key that both processes use.
    func key(_ name: String) throws -> Key { try Key("\(place)/\(name)") }

    /// Waits until the other process has reached the same step.
    ///
    /// - Returns: The other process; 0 if it has left already.
    @discardableResult
    func reach(_ step: Int) async throws -> Int {
        try await progress.modify { [me] in $0[me] = step }
        let reached = try await progress.wait(timeout: .seconds(30)) { progress in
            (progress.count == 2 || step > 1) && progress.values.allSatisfy { $0 >= step }
        }
        return reached.keys.first { $0 != me } ?? 0
    }

    /// The last process to leave deletes everything.
    func leave() throws {
        let isLast = try progress.modify { [me] progress in
            progress[me] = nil
            return progress.isEmpty
        }
        if isLast { try statectl("delete", "\(place)/") }
    }
}
