/// What is finished but not on stable storage, and who waits for it.
package struct PendingCommits: ~Copyable {
    /// A caller's answer, until the commit that it depends on is durable or undone.
    struct HeldAnswer {
        var revision: Int64
        var result: Result<Int64, StateError>
        var completion: @Sendable (Result<Int64, StateError>) -> Void
        /// The request, if it may have to be repeated.
        var mutations: [Mutation] = []
    }

    /// What must be delivered without the lock.
    enum Delivery {
        case event(KeyspaceEvent, LocalWatch)
        case answer(HeldAnswer)
        case compaction(CompactionAnswer)
    }

    /// What the commit thread does not have yet.
    package let filling = CommitBatch()
    /// Transactions before a commit whose outcome is unknown; nothing undoes them until the store
    /// is open again.
    let inDoubt = CommitBatch()
    /// Bytes of everything that is finished and not durable.
    package internal(set) var byteCount = 0
    /// Waiting answers, in order of revision.
    private var answers: [HeldAnswer] = []
    private var deliveries: [Delivery] = []
    /// Whether somebody is delivering them.
    private var isDelivering = false

    /// Keeps an answer until what it depends on is durable or undone.
    ///
    /// A refusal may depend on an earlier commit than the answers before it: it waits among the
    /// answers of its revision.
    ///
    /// - Complexity: O(*m*) in the answers of later revisions.
    mutating func hold(_ answer: HeldAnswer) {
        var place = answers.count
        while place > 0, answers[place - 1].revision > answer.revision { place -= 1 }
        answers.insert(answer, at: place)
    }

    /// The same, but an answer that depends on nothing above `durable` is delivered.
    mutating func hold(_ answer: HeldAnswer, above durable: Int64) {
        if answer.revision > durable { hold(answer) } else { deliver(.answer(answer)) }
    }

    /// Everything up to `durable` is on stable storage: delivers the answers that waited for it.
    mutating func release(through durable: Int64) {
        guard let first = answers.first, first.revision <= durable else { return }
        let end = answers.firstIndex { $0.revision > durable } ?? answers.count
        for answer in answers[..<end] { deliver(.answer(answer)) }
        answers.removeFirst(end)
    }

    /// Commits from `revision` on have failed: delivers the error to those who waited for them.
    mutating func fail(from revision: Int64, _ error: StateError) {
        let start = answers.firstIndex { $0.revision >= revision } ?? answers.count
        for var answer in answers[start...] {
            answer.result = .failure(error)
            deliver(.answer(answer))
        }
        answers.removeSubrange(start...)
    }

    /// Takes all waiting answers.
    mutating func takeAnswers() -> [HeldAnswer] {
        defer { answers = [] }
        return answers
    }

    // MARK: Handing out

    var hasDeliveries: Bool { !deliveries.isEmpty }

    mutating func deliver(_ delivery: Delivery) { deliveries.append(delivery) }

    /// What the caller must deliver; nil if there is nothing or somebody else is delivering.
    ///
    /// `goingOn`: whether the caller has already begun.
    mutating func takeDeliveries(goingOn: Bool) -> [Delivery]? {
        if isDelivering, !goingOn { return nil }
        guard !deliveries.isEmpty else {
            isDelivering = false
            return nil
        }
        isDelivering = true
        defer { deliveries = [] }
        return deliveries
    }

    /// The caller delivers no more, though there may be more.
    mutating func stopDelivering() { isDelivering = false }
}
