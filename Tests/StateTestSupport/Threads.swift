package import StateEngine

/// Runs `body` on so many threads at once and waits for all of them.
package func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let threads = (0..<count).map { WorkerThread(name: "test \($0)") }
    for (number, thread) in threads.enumerated() { thread.start { body(number) } }
    for thread in threads { thread.join() }
}

extension Key {
    /// A key that the test knows to be one.
    package init(verified text: String) {
        self = Array(text.utf8).withUnsafeBytes { Key(verified: $0) }
    }
}
