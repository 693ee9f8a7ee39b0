/// One key as an order of its operations leaves it: the specification that histories are checked against.
///
/// Replies of GET, SET, DEL and INCRBY tell no revisions, so the revision of the last change is known
/// exactly or from below. It rises with every change, a delete among them.
struct KeyState: Hashable {
    /// nil where the key is absent.
    private(set) var value: String?
    /// The lowest revision that the last change can have.
    private var revision: Int64 = 0
    /// Whether the last change has exactly that revision.
    private var isExact = true

    /// The state after an operation with this outcome; for a lost one, after it happened.
    ///
    /// - Returns: nil where it cannot have happened here, or was lost and would have changed nothing.
    func after(_ operation: Operation) -> KeyState? {
        if case .refused = operation.outcome { return self }
        return switch operation.request {
        case .get: operation.outcome == .value(value) ? self : nil
        case .getEntry: afterGetEntry(operation.outcome)
        case .set(let new): afterSet(new, operation.outcome)
        case .setEntry(let new, let expected): afterSetEntry(new, expected, operation.outcome)
        case .delete: afterDelete(operation.outcome)
        case .add(let number): afterAdd(number, operation.outcome)
        }
    }

    private func afterGetEntry(_ outcome: Operation.Outcome) -> KeyState? {
        switch outcome {
        case .entry(nil): value == nil ? self : nil
        case .entry(let entry?): entry.value == value ? at(entry.revision) : nil
        default: nil
        }
    }

    private func afterSet(_ new: String, _ outcome: Operation.Outcome) -> KeyState? {
        outcome == .done || outcome == .unknown ? changed(to: new) : nil
    }

    private func afterSetEntry(
        _ new: String,
        _ expected: Int64?,
        _ outcome: Operation.Outcome
    ) -> KeyState? {
        switch outcome {
        case .revision(let revision): met(expected)?.changed(to: new, at: revision)
        case .conflict(let found): expected == nil || expected == found ? nil : at(found)
        case .unknown: met(expected)?.changed(to: new)
        default: nil
        }
    }

    private func afterDelete(_ outcome: Operation.Outcome) -> KeyState? {
        switch outcome {
        case .deleted(true), .unknown: value == nil ? nil : changed(to: nil)
        case .deleted(false): value == nil ? self : nil
        default: nil
        }
    }

    private func afterAdd(_ number: Int64, _ outcome: Operation.Outcome) -> KeyState? {
        guard let old = Int64(value ?? "0") else { return outcome == .notANumber ? self : nil }
        let (sum, overflows) = old.addingReportingOverflow(number)
        guard !overflows, outcome == .sum(sum) || outcome == .unknown else { return nil }
        return changed(to: String(sum))
    }

    // MARK: Revisions

    /// The same, where IFREV with this revision holds.
    private func met(_ expected: Int64?) -> KeyState? {
        guard let expected else { return self }
        return at(expected)
    }

    /// The same, where the key can be at this revision (0: absent).
    private func at(_ found: Int64) -> KeyState? {
        guard found > 0 else { return value == nil ? self : nil }
        guard value != nil, isExact ? found == revision : found >= revision else { return nil }
        var state = self
        state.revision = found
        state.isExact = true
        return state
    }

    private func changed(to new: String?, at told: Int64? = nil) -> KeyState? {
        let lowest = revision + 1
        if let told, told < lowest { return nil }
        var state = self
        state.value = new
        state.revision = told ?? lowest
        state.isExact = told != nil
        return state
    }
}

extension KeyState: CustomStringConvertible {
    var description: String {
        "\(value ?? "(absent)") at \(isExact ? "" : "or above ")\(revision)"
    }
}
