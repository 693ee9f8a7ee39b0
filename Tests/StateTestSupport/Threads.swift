import Glibc
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

/// The number of the calling thread, as /proc has it.
package func currentThread() -> Int32 {
    var path = [CChar](repeating: 0, count: 64)
    let count = max(0, readlink("/proc/thread-self", &path, path.count))
    let text = String(decoding: path.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.split(separator: "/").last.flatMap { Int32($0) } ?? 0
}

/// Whether a thread of this process waits for something; false once it has ended.
package func isAsleep(_ thread: Int32) -> Bool {
    guard let bytes = try? readFile("/proc/self/task/\(thread)/stat") else { return false }
    // The name stands in parentheses, and may contain any: proc_pid_stat(5).
    let fields = String(decoding: bytes, as: UTF8.self).split(separator: ")").last
    return fields?.split(separator: " ").first == "S"
}
