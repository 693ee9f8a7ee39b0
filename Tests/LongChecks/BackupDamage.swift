import Glibc
import StateSystem
import StateTestSupport

/// Changes single bits and bytes of a backup: each is refused, with the name of the file and of the
/// piece that it is in.
struct BackupFlips {
    private let whole: String
    private let count: Int
    private let directory: TemporaryDirectory
    /// Where the pieces of the file begin, and at last its end.
    private let starts: [Int]
    /// One flip of so many is also restored.
    private static let restoredEvery = 20
    private static let magicByteCount = 16

    init(_ file: String, count: Int, in directory: TemporaryDirectory) throws {
        (whole, self.count, self.directory) = (file, count, directory)
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        var starts = [BackupFlips.magicByteCount]
        var head = [UInt8](repeating: 0, count: 13)
        while let start = starts.last, pread(descriptor, &head, 13, off_t(start)) == 13 {
            let length = head[9..<13].reversed().reduce(0) { $0 << 8 | Int($1) }
            starts.append(start + 13 + length + 4)
        }
        guard starts.count > 2, Int(fileSize(file)) == starts.last else {
            throw Failure("\(file) does not consist of pieces")
        }
        self.starts = starts
    }

    /// - Throws: ``Failure`` if one is accepted, or refused by another name.
    func run() throws -> String {
        let failures = StateLock<[any Error]>([])
        // As many as there are processors, mostly.
        let threads = (0..<2).map { part in
            let thread = WorkerThread(name: "flips")
            thread.start {
                do { try run(part, of: 2) } catch { failures.withLock { $0.append(error) } }
            }
            return thread
        }
        for thread in threads { thread.join() }
        if let failure = failures.withLock({ $0.first }) { throw failure }
        return "\(count) flips in \((starts.last ?? 0) >> 20) MiB refused by name, "
            + "\(count / BackupFlips.restoredEvery) of them by a restore, too"
    }

    private func run(_ part: Int, of parts: Int) throws {
        let file = directory.path(of: "flipped\(part)")
        let copy = try runCommand("cp", [whole, file])
        guard copy.exitCode == 0 else { throw Failure("\(copy)") }
        let descriptor = open(file, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemFailure(call: "open", errno) }
        defer {
            close(descriptor)
            unlink(file)
        }
        var random = SplitMix(seed: 23 + UInt64(part))
        for number in stride(from: part, to: count, by: parts) {
            let place = place(number, &random)
            var byte: UInt8 = 0
            guard pread(descriptor, &byte, 1, off_t(place)) == 1 else { throw Failure("pread") }
            let mask: UInt8 =
                number / parts % 2 == 0
                ? 1 << UInt8.random(in: 0..<8, using: &random)
                : .random(in: 1...255, using: &random)
            try write(byte ^ mask, at: place, descriptor)
            let isRestored =
                number / parts % BackupFlips.restoredEvery == 7 % BackupFlips.restoredEvery
            try require(file, place, isRestored)
            try write(byte, at: place, descriptor)
        }
        let last = try runProgram("statectl", ["backup", "--verify", file])
        guard last.exitCode == 0 else { throw Failure("without a flip: \(last)") }
    }

    /// Mostly anywhere, and in some the beginning, the end, and what surrounds the rows.
    private func place(_ number: Int, _ random: inout SplitMix) -> Int {
        let end = starts[starts.count - 1]
        let piece = Int.random(in: 0..<starts.count - 1, using: &random)
        switch number % 50 {
        case 0: return Int.random(in: 0..<BackupFlips.magicByteCount, using: &random)
        case 1: return Int.random(in: starts[starts.count - 2]..<end, using: &random)
        case 2..<7: return starts[piece] + Int.random(in: 0..<13, using: &random)
        case 7..<10: return starts[piece + 1] - 1 - Int.random(in: 0..<4, using: &random)
        default: return Int.random(in: 0..<end, using: &random)
        }
    }

    private func write(_ byte: UInt8, at place: Int, _ descriptor: Int32) throws {
        var byte = byte
        guard pwrite(descriptor, &byte, 1, off_t(place)) == 1 else {
            throw SystemFailure(call: "pwrite", errno)
        }
    }

    private func require(_ file: String, _ place: Int, _ isRestored: Bool) throws {
        let piece = (starts.firstIndex { $0 > place } ?? 0) - 1
        let name = piece < 0 ? file : "\(file): piece \(piece), from byte \(starts[piece]) on:"
        let check = try runProgram("statectl", ["backup", "--verify", file])
        guard check.exitCode == 5, check.errorText.contains(name), check.output.isEmpty else {
            throw Failure("byte \(place) was changed, and backup --verify says: \(check)")
        }
        guard isRestored else { return }
        let target = file + ".new"
        let restore = try runProgram("stated", ["--restore", file, "--data", target])
        guard restore.exitCode == 5, restore.errorText.contains(name) else {
            throw Failure("byte \(place) was changed, and --restore says: \(restore)")
        }
        guard access(target, F_OK) != 0 else { throw Failure("a refused restore left \(target)") }
    }
}

/// Restores onto file systems that are too small.
struct FullDiskRestore {
    private let file: String
    private let directory: TemporaryDirectory

    init(_ file: String, in directory: TemporaryDirectory) {
        (self.file, self.directory) = (file, directory)
    }

    /// - Throws: ``Failure`` if something is left on one, or it is not named as the reason.
    func run() throws -> String {
        guard SmallFileSystem.isPossible else {
            return "full disks skipped: only root may mount a file system"
        }
        let place = directory.path(of: "disk")
        let need = try kibibytes(restoredOn: SmallFileSystem(at: place, kibibytes: 0))
        let sizes = [need / 20, need / 4, need / 2, need * 9 / 10, need - 64]
        for size in sizes {
            let disk = try SmallFileSystem(at: place, kibibytes: size)
            let result = try restore(to: disk)
            let isNamed = ["full", "No space left"].contains { result.errorText.contains($0) }
            guard result.exitCode == 5, isNamed else {
                throw Failure("a restore onto a disk of \(size) KiB: \(result)")
            }
            let left = try runCommand("ls", ["-A", disk.path])
            guard left.output.isEmpty, try disk.usedKibibytes() == 0 else {
                throw Failure("a restore onto a disk of \(size) KiB left: \(left)")
            }
        }
        let list = sizes.map { "\($0)" }.joined(separator: ", ")
        return "restores that need \(need) KiB left nothing on disks of \(list) KiB"
    }

    private func restore(to disk: SmallFileSystem) throws -> CommandResult {
        try runProgram("stated", ["--restore", file, "--data", disk.path + "/new"])
    }

    /// What a restore takes where there is room.
    private func kibibytes(restoredOn disk: SmallFileSystem) throws -> Int {
        let result = try restore(to: disk)
        guard result.exitCode == 0 else { throw Failure("\(result)") }
        return try disk.usedKibibytes()
    }
}

/// The size of a file in bytes.
private func fileSize(_ path: String) -> off_t {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_size : -1
}
