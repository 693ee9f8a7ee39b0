import Glibc
import StateTestSupport
import StateWire

/// Backups of many keys under many writers.
///
/// Checked: the p99 of others beside a backup is at most twice that without; a backup is of one
/// revision, and what is restored from it is what the daemon had then: values, owners, deadlines and
/// history; each flipped bit or byte of a backup is refused by name; a restore onto a full disk leaves
/// nothing.
struct BackupCheck {
    private let keyCount: Int
    private let roundCount: Int
    private let writerCount: Int
    private let readerCount: Int
    /// Of the load before and after each backup, in milliseconds.
    private let quiet: Int
    private let flipCount: Int
    /// In hundredths; 0: only printed.
    private let ratioLimit: Int
    private let directory: TemporaryDirectory
    private let restored: TemporaryDirectory

    init(_ options: Options) throws {
        keyCount = try options.number("keys", standard: 1_000_000)
        roundCount = try options.number("rounds", standard: 3)
        writerCount = try options.number("writers", standard: 50)
        readerCount = try options.number("readers", standard: 10)
        quiet = try options.number("quiet", standard: 5_000)
        flipCount = try options.number("flips", standard: 1_000)
        ratioLimit = try options.number("ratio", standard: 200)
        directory = try options.makeDirectory()
        restored = try options.makeDirectory()
    }

    /// Other users may write, and nothing is compacted, so that all can be compared.
    private static let configuration = """
        {
          socket: { mode: "0666" },
          history: { age: "30d", changes: 1000000000, bytes: "1TiB" },
        }

        """

    func run() throws {
        chmod(directory.path, 0o711)
        let file = try directory.write(BackupCheck.configuration, to: "backup.json5")
        let daemon = try Daemon("--config", file, directory: directory, within: .seconds(60))
        try BackupFill(keyCount: keyCount).fill(daemon.socketPath)
        let first = directory.path(of: "first")
        let made = try backup(daemon, to: first)
        print("daemon \(daemon.pid), \(keyCount) keys; without load: \(made.text)")

        let (figures, last) = try rounds(daemon)
        let writes = median(figures.map(\.writes.ratio))
        let reads = median(figures.map(\.reads.ratio))
        let store = try restore(last.file, to: restored.path(of: "data"))
        print("restored: \(store)")
        let compared = try BackupComparison(
            daemon,
            restored,
            configuration: file,
            revision: last.revision,
            keyCount: keyCount
        ).run()
        print(compared)
        let flips = try BackupFlips(first, count: flipCount, in: directory).run()
        print(flips)
        let full = try FullDiskRestore(first, in: directory).run()
        print(full)
        print(
            "backup: \(keyCount) keys, \(writerCount) writers, \(roundCount) rounds; beside a backup p99 of writes "
                + "\(writes.text(2)) times, of reads \(reads.text(2)) times as long (medians); \(compared); \(flips); \(full)"
        )
        guard ratioLimit == 0 || max(writes, reads) * 100 <= Double(ratioLimit) else {
            throw Failure(
                "the p99 is more than \((Double(ratioLimit) / 100).text(2)) times as long"
            )
        }
    }

    // MARK: Rounds

    /// The load without, beside and without a backup.
    private struct Round: CustomStringConvertible {
        var writes: BackupLoad.Figures
        var reads: BackupLoad.Figures
        var milliseconds: Int64

        var description: String {
            "writes \(writes); reads \(reads); backup in \(milliseconds) ms"
        }
    }

    private func rounds(_ daemon: Daemon) throws -> ([Round], last: Made) {
        let load = try BackupLoad(
            writers: writerCount,
            readers: readerCount,
            keyCount: keyCount,
            daemon.socketPath
        )
        var figures: [Round] = []
        var last: Made?
        for number in 0..<max(1, roundCount) {
            let begin = wallNanoseconds()
            usleep(UInt32(quiet) * 1_000)
            let start = wallNanoseconds()
            let made = try backup(daemon, to: directory.path(of: "b"))
            let end = wallNanoseconds()
            // What is behind the backup, such as the writes of the disk, is not without it.
            usleep(UInt32(quiet / 5) * 1_000)
            let after = wallNanoseconds()
            usleep(UInt32(quiet) * 1_000)
            let without = [begin..<start, after..<wallNanoseconds()]
            let round = Round(
                writes: load.figures(ofWriters: true, without: without, beside: start..<end),
                reads: load.figures(ofWriters: false, without: without, beside: start..<end),
                milliseconds: (end - start) / 1_000_000
            )
            print("round \(number + 1): \(round); \(made.text)")
            figures.append(round)
            last = made
        }
        try load.end()
        guard let last else { throw Failure("no round") }
        return (figures, last)
    }

    // MARK: The programs

    /// A backup, and what `statectl` says of it.
    struct Made {
        let file: String
        let text: String
        let revision: Int64
    }

    private func backup(_ daemon: Daemon, to file: String) throws -> Made {
        let result = try runProgram("statectl", ["--socket", daemon.socketPath, "backup", file])
        guard result.exitCode == 0, let line = result.lines.first else {
            throw Failure("statectl backup: \(result)")
        }
        let words = line.split(separator: " ")
        guard words.count > 3, words[0] == "everything", let revision = Int64(words[3]) else {
            throw Failure("statectl backup says '\(line)'")
        }
        let check = try runProgram("statectl", ["backup", "--verify", file])
        guard check.exitCode == 0, check.lines == [line] else {
            throw Failure("statectl backup --verify: \(check)")
        }
        return Made(file: file, text: line, revision: revision)
    }

    private func restore(_ file: String, to target: String) throws -> String {
        let result = try runProgram("stated", ["--restore", file, "--data", target])
        guard result.exitCode == 0, let line = result.lines.first else {
            throw Failure("stated --restore: \(result)")
        }
        return String(line.prefix { $0 != ":" })
    }
}

/// Runs a program of this package to its end, which may take ten minutes.
func runProgram(_ name: String, _ arguments: [String]) throws -> CommandResult {
    try RunningCommand(builtProgram(name), arguments.map { Array($0.utf8) })
        .finish(within: .seconds(600))
}
