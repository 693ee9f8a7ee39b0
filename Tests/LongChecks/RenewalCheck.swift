import StateTestSupport
import StateWire

/// One key whose deadline is renewed again and again: the memory of the daemon does not grow.
struct RenewalCheck {
    private let count: Int
    private let directory: TemporaryDirectory

    init(_ options: Options) throws {
        count = try options.number("count", standard: 1_000_000)
        directory = try options.makeDirectory()
    }

    func run() throws {
        // What the history keeps would be memory of the page cache, and counts as none of the daemon; it is bounded all the same.
        let daemon = try Daemon("--history-changes", "10000", directory: directory)
        let wire = try Wire(daemon.socketPath)
        try wire.ask("SET", "lease", "v", "EX", "1000")
        func renew(_ times: Int) throws {
            try wire.pipeline(times) { number in
                switch number % 3 {
                case 0: Wire.command(["SET", "lease", "v", "EX", "1000"])
                case 1: Wire.command(["EXPIRE", "lease", "\(1_000 + number % 100)"])
                default: Wire.command(["GETEX", "lease", "PX", "1000000"])
                }
            }
        }
        // The first tenth fills what is kept in any case.
        try renew(count / 10)
        let before = try kibibytes("VmRSS", of: daemon.pid)
        try renew(count - count / 10)
        let after = try kibibytes("VmRSS", of: daemon.pid)
        guard let left = try wire.ask("PTTL", "lease").integerValue, left > 900_000 else {
            throw Failure("the key does not live as long as it was renewed for")
        }
        guard let info = try wire.ask("INFO", "keyspace").textValue, info.contains("expires=1,")
        else {
            throw Failure("there is not one deadline")
        }
        try daemon.stop()
        print(
            "renewals: \(count) of one key; resident \(before) KiB after a tenth of them, \(after) KiB at the end"
        )
        guard after - before <= 4_096 else {
            throw Failure("the memory grew by \(after - before) KiB")
        }
    }
}
