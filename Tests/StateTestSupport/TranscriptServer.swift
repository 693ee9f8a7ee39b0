import CLinux
import Glibc
import StateEngine

/// A listening Unix socket that serves one connection by a transcript: what is received, what is sent.
///
/// It is for what a daemon that is well does not do: to die between a request and its reply, to be silent.
package final class TranscriptServer {
    /// One line of a transcript.
    package enum Step: Sendable {
        /// Receives as many bytes.
        case receive(Int)
        /// Sends text.
        case send(String)
        /// Keeps the connection open until the client closes it.
        case waitForEnd
    }

    /// Where it listens.
    package let path: String
    private let directory: TemporaryDirectory
    private let script: Script
    private let thread = WorkerThread(name: "transcript")

    /// What the thread works on; the owner reads it after it has joined the thread.
    private final class Script: @unchecked Sendable {
        let steps: [Step]
        let listener: Int32
        var received: [UInt8] = []

        init(steps: [Step], listener: Int32) {
            self.steps = steps
            self.listener = listener
        }

        // Once neither the thread nor the owner uses it.
        deinit { close(listener) }

        func run() {
            // Close-on-exec from the start: a program that a test beside starts would keep it open, and the client waiting.
            var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            poll(&waiting, 1, -1)
            let connection = clinux_accept(listener)
            _ = fcntl(connection, F_SETFL, 0)
            defer { close(connection) }
            for step in steps {
                switch step {
                case .receive(let count): receive(count, from: connection)
                case .send(let text):
                    _ = text.withCString {
                        send(connection, $0, strlen($0), Int32(MSG_NOSIGNAL))
                    }
                case .waitForEnd: _ = readAll(connection)
                }
            }
        }

        private func receive(_ count: Int, from connection: Int32) {
            var room = [UInt8](repeating: 0, count: count)
            let received = recv(connection, &room, count, Int32(MSG_WAITALL))
            self.received += room[0..<max(0, received)]
        }
    }

    /// Begins to listen.
    package convenience init(_ steps: Step...) throws { try self.init(steps) }

    /// The same with the steps as a list.
    package init(_ steps: [Step]) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "s")
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let status = withUnixAddress(of: path) { bind(listener, $0, $1) }
        guard status == 0, listen(listener, 8) == 0 else {
            throw SystemFailure(call: "bind \(path)", errno)
        }
        (self.directory, self.path) = (directory, path)
        script = Script(steps: steps, listener: listener)
        thread.start { [script] in script.run() }
    }

    deinit {
        // Where nobody has connected, accept returns now.
        shutdown(script.listener, Int32(SHUT_RDWR))
    }

    /// Waits for the end of the transcript, and returns what was received as text.
    package func finish() -> String {
        thread.join()
        return String(decoding: script.received, as: UTF8.self)
    }
}
