import CLinux
import Glibc
import StateTestSupport
import Testing

/// A service manager of a test: it starts the daemon with its listening socket, keeps the descriptors that it is sent, and gives them
/// to the next process.
///
/// Used by one thread.
final class HandoverManager: @unchecked Sendable {
    let directory: TemporaryDirectory
    private let listener: RawSocket
    private let notices: RawSocket
    private let arguments: [String]
    private let environment: [String: String]
    private(set) var pid: pid_t = 0
    /// What it keeps: names and descriptors, in the order in which they came.
    var kept: [(name: String, descriptor: Int32)] = []

    var socketPath: String { directory.path(of: "s") }

    init(_ arguments: [String] = [], environment: [String: String] = ["FDSTORE": "4"]) throws {
        directory = try TemporaryDirectory()
        (self.arguments, self.environment) = (arguments, environment)
        listener = try RawSocket.bound(to: directory.path(of: "s"))
        notices = try RawSocket.bound(to: directory.path(of: "n"), isDatagram: true)
        try #require(listen(listener.descriptor, 128) == 0)
        try start()
    }

    deinit {
        if pid > 0 {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
        for descriptor in kept.map(\.descriptor) { close(descriptor) }
    }

    func connect() throws -> Peer { try Peer(socketPath) }

    /// What the daemon has written, over all its runs.
    var log: String {
        (try? readFile(directory.path(of: "log"))).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    // MARK: Processes

    /// Starts a process with all that is kept, and waits until it serves.
    func start() throws {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        let flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC
        let log = open(directory.path(of: "log"), flags, 0o600)
        // Above those that the process gets.
        let passed = ([null, log, log, listener.descriptor] + kept.map(\.descriptor)).map {
            fcntl($0, F_DUPFD_CLOEXEC, 300)
        }
        defer { for descriptor in [null, log] + passed { close(descriptor) } }
        var variables = environment
        variables["NOTIFY_SOCKET"] = directory.path(of: "n")
        variables["LISTEN_FDS"] = "\(1 + kept.count)"
        variables["LISTEN_FDNAMES"] = (["stated.socket"] + kept.map(\.name)).joined(separator: ":")
        let words = [builtProgram("stated"), "--data", directory.path(of: "data")] + arguments
        pid = try spawn(
            "sh",
            (["-c", #"LISTEN_PID=$$ exec "$0" "$@""#] + words).map { Array($0.utf8) },
            variables,
            descriptors: passed
        )
        while try !take().contains("READY=1") {}
    }

    /// Asks it to stop, and takes what it leaves.
    func stop() throws {
        kill(pid, SIGTERM)
        var status: Int32 = 0
        let deadline = ContinuousClock.now + .seconds(20)
        while waitpid(pid, &status, WNOHANG) == 0 {
            try #require(ContinuousClock.now < deadline, "the daemon does not stop: \(log)")
            var waiting = pollfd(fd: notices.descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&waiting, 1, 2) > 0 { _ = try take() }
        }
        pid = 0
        #expect(status == 0, "\(log)")
        var waiting = pollfd(fd: notices.descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&waiting, 1, 0) > 0 { _ = try take() }
    }

    func restart() throws {
        try stop()
        try start()
    }

    /// Takes one message.
    private func take() throws -> [Substring] {
        var waiting = pollfd(fd: notices.descriptor, events: Int16(POLLIN), revents: 0)
        try #require(poll(&waiting, 1, 20_000) > 0, "the daemon says nothing: \(log)")
        let (bytes, descriptors) = try #require(received(from: notices.descriptor))
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let name = lines.first { $0.hasPrefix("FDNAME=") }.map { String($0.dropFirst(7)) } ?? ""
        if lines.contains("FDSTORE=1") {
            kept += descriptors.map { (name, $0) }
        } else {
            // Also the barrier: all before it was taken.
            for descriptor in descriptors { close(descriptor) }
        }
        if lines.contains("FDSTOREREMOVE=1") {
            for (kept, descriptor) in kept where kept == name { close(descriptor) }
            kept.removeAll { $0.name == name }
        }
        return lines
    }
}

/// One message with its descriptors; nil if there is none.
func received(from socket: Int32) -> (bytes: [UInt8], descriptors: [Int32])? {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    var descriptors = [Int32](repeating: -1, count: Int(CLINUX_DESCRIPTORS))
    var count: Int32 = 0
    let size = clinux_receive_descriptors(socket, &bytes, bytes.count, &descriptors, &count)
    return size > 0 ? (Array(bytes[..<size]), Array(descriptors[..<Int(count)])) : nil
}
