/// What a client asked of one key, what it was told, and between which moments it happened.
package struct Operation: Sendable {
    /// What was asked.
    package enum Request: Hashable, Sendable {
        /// GET.
        case get
        /// STATE.GET.
        case getEntry
        /// SET.
        case set(String)
        /// STATE.SET, with IFREV where a revision is named; 0 means absent.
        case setEntry(String, ifRevision: Int64?)
        /// DEL.
        case delete
        /// INCRBY.
        case add(Int64)
    }

    /// What was answered.
    package enum Outcome: Hashable, Sendable {
        /// The answer to GET; nil where the key was absent.
        case value(String?)
        /// The answer to STATE.GET; nil where the key was absent.
        case entry(Entry?)
        /// The answer to SET.
        case done
        /// The answer to STATE.SET: the revision of the write.
        case revision(Int64)
        /// The answer to DEL: whether there was something to delete.
        case deleted(Bool)
        /// The answer to INCRBY: the sum.
        case sum(Int64)
        /// INCRBY found a value that is no number; nothing happened.
        case notANumber
        /// IFREV found this revision, 0 for an absent key; nothing happened.
        case conflict(Int64)
        /// It was refused for a reason that tells nothing of the key; nothing happened.
        case refused(String)
        /// The answer was lost: it happened before ``Operation/ended`` or not at all.
        case unknown
    }

    /// A value and the revision that it was written at.
    package struct Entry: Hashable, Sendable {
        package let value: String
        package let revision: Int64

        package init(_ value: String, at revision: Int64) {
            self.value = value
            self.revision = revision
        }
    }

    /// Who asked; the operations of one client happen in the order in which it sent them.
    package let client: Int
    package let key: String
    package let request: Request
    package var outcome: Outcome
    /// When it was sent, in monotonic nanoseconds.
    package let invoked: Int64
    /// When its answer had come; for an unknown outcome, the moment from which on it cannot happen any more,
    /// `.max` where nobody knows one.
    package let ended: Int64

    package init(
        client: Int,
        key: String,
        _ request: Request,
        _ outcome: Outcome,
        invoked: Int64,
        ended: Int64
    ) {
        self.client = client
        self.key = key
        self.request = request
        self.outcome = outcome
        self.invoked = invoked
        self.ended = ended
    }

    /// Whether it may not have happened at all.
    var isOptional: Bool { outcome == .unknown }

    /// Whether it says something about the key: lost reads and refusals do not.
    var isObservation: Bool {
        switch (request, outcome) {
        case (.get, .unknown), (.getEntry, .unknown), (_, .refused): false
        default: true
        }
    }
}

extension Operation.Request: CustomStringConvertible {
    package var description: String {
        switch self {
        case .get: "GET"
        case .getEntry: "STATE.GET"
        case .set(let value): "SET \(value)"
        case .setEntry(let value, nil): "STATE.SET \(value)"
        case .setEntry(let value, let revision?): "STATE.SET \(value) IFREV \(revision)"
        case .delete: "DEL"
        case .add(let number): "INCRBY \(number)"
        }
    }
}

extension Operation.Outcome: CustomStringConvertible {
    package var description: String {
        switch self {
        case .value(let value): value ?? "(absent)"
        case .entry(let entry): entry.map { "\($0.value) at \($0.revision)" } ?? "(absent)"
        case .done: "OK"
        case .revision(let revision): "at \(revision)"
        case .deleted(let wasThere): wasThere ? "deleted" : "nothing deleted"
        case .sum(let sum): "\(sum)"
        case .notANumber: "not a number"
        case .conflict(0): "CONFLICT, absent"
        case .conflict(let revision): "CONFLICT, at \(revision)"
        case .refused(let reason): "refused: \(reason)"
        case .unknown: "(lost)"
        }
    }
}
