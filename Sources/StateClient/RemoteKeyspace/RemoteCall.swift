import StateModel
import StateWire

/// A caller's request, from its submission to its answer.
struct RemoteCall: Sendable {
    /// The request in wire format; empty once it is sent.
    var request: [UInt8]
    /// Changes something: if its reply is lost, its outcome is unknown.
    let isWrite: Bool
    /// Keys that it certainly changes; every watch of them must get the change before the request
    /// is answered.
    let changedKeys: [Key]
    /// How long the answer may take after the request is sent.
    let timeout: Duration
    /// How long the request waits if the daemon is unavailable; nil: it fails at once.
    let patience: Duration?
    /// When the request must be sent, and later answered.
    var deadline: Deadline
    /// Called once, on the connection's thread.
    let finish: @Sendable (Result<Reply, StateError>) -> Void

    init(
        request: [UInt8],
        isWrite: Bool,
        changedKeys: [Key] = [],
        timeout: Duration,
        patience: Duration?,
        _ finish: @escaping @Sendable (Result<Reply, StateError>) -> Void
    ) {
        self.request = request
        self.isWrite = isWrite
        self.changedKeys = changedKeys
        self.timeout = timeout
        self.patience = patience
        self.finish = finish
        deadline = Deadline(after: max(timeout, patience ?? timeout))
    }

    /// Fails the call.
    ///
    /// - Parameters:
    ///   - cause: Why there is no answer.
    ///   - isSent: Whether any part of the request may have arrived.
    func fail(_ cause: String, isSent: Bool) {
        let isUnknown = isSent && isWrite
        finish(.failure(isUnknown ? .unknownOutcome(cause) : StateError(.unreachable, cause)))
    }
}

/// A queue: first in, first out.
struct FirstInFirstOut<Element> {
    private var elements: [Element?] = []
    private var head = 0

    var count: Int { elements.count - head }
    var isEmpty: Bool { head == elements.count }
    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: Element) { elements.append(element) }

    /// - Complexity: O(1) amortized.
    mutating func popFirst() -> Element? {
        guard !isEmpty, let element = elements[head] else { return nil }
        elements[head] = nil
        head += 1
        if head == elements.count || head >= 1_024 && head * 2 > elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Calls `body` with each, in order.
    mutating func update(_ body: (inout Element) -> Void) {
        for index in head..<elements.count {
            guard var element = elements[index] else { continue }
            body(&element)
            elements[index] = element
        }
    }

    /// Removes and returns the elements for which `body` returns true, in order.
    mutating func take(where body: (Element) -> Bool) -> [Element] {
        var taken: [Element] = []
        var kept: [Element?] = []
        for case let element? in elements[head...] {
            if body(element) { taken.append(element) } else { kept.append(element) }
        }
        (elements, head) = (kept, 0)
        return taken
    }
}
