import Glibc
import StateClient
import StateModel

/// Entries on their way into commits.
///
/// A batch is sent only when the one before it is durable. So after a failure exactly the lines
/// before the failed batch are stored.
struct Importer {
    private let client: Client
    private let prefix: [UInt8]
    /// Whether lines are as sysctl prints them, and dots in keys become slashes.
    private let hasDots: Bool
    private(set) var entryCount = 0
    private(set) var commitCount = 0
    private(set) var revision: Int64 = 0

    private var batch: [(key: Key, value: [UInt8])] = []
    private var batchByteCount = 0
    private var lineNumber = 0
    private var firstLineOfBatch = 1
    private let showsProgress = isatty(STDERR_FILENO) == 1

    private static let batchLineCount = 1_000
    /// A batch of large values ends before 1,000 lines: a transaction has a limit in bytes.
    private static let batchByteLimit = 16 << 20

    init(client: Client, prefix: [UInt8], hasDots: Bool) {
        self.client = client
        self.prefix = prefix
        self.hasDots = hasDots
        batch.reserveCapacity(Self.batchLineCount)
    }

    /// Takes a line, and commits those before if they are enough.
    mutating func take(_ line: ArraySlice<UInt8>) throws(Failure) {
        lineNumber += 1
        let isSetting = hasDots && line.first != UInt8(ascii: "{")
        let entry: ImportLine?
        do throws(StateError) {
            entry = try line.withUnsafeBufferPointer { (line) throws(StateError) in
                isSetting ? try ImportLine(sysctl: Bytes(line)) : try ImportLine(Bytes(line))
            }
        } catch {
            throw fault(error.message)
        }
        guard let entry else { return }
        let key = try key(of: entry)
        if isSetting { return try add(setting: key, entry.value) }
        guard key != batch.last?.key else {
            throw fault(
                "the key '\(key)' is in the line before, too: keep one of them; with --dots they are joined"
            )
        }
        try add(key, entry.value)
    }

    /// Takes the entries of a file, or none of them if one has a fault.
    mutating func take(_ file: ImportDocument) throws(Failure) {
        var file = file
        var entries: [(line: Int, key: Key, value: [UInt8])] = []
        do throws(StateError) {
            while let entry = try file.next() {
                entries.append((file.line, try Key(bytes: name(of: entry)), entry.value))
            }
        } catch {
            lineNumber = file.line
            throw fault(error.message)
        }
        for (line, key, value) in entries {
            lineNumber = line
            try add(key, value)
        }
    }

    /// Commits what is left.
    mutating func finish() throws(Failure) {
        try commit(upTo: lineNumber)
        if showsProgress, commitCount > 0 { Output.writeError("\r\u{1B}[K") }
    }

    /// Takes a line of sysctl: the next one of the last value, or the first one of another.
    private mutating func add(setting key: Key, _ value: [UInt8]) throws(Failure) {
        guard let last = batch.indices.last, batch[last].key == key else {
            guard value.first != UInt8(ascii: " "), value.first != UInt8(ascii: "\t") else {
                throw fault(
                    "more than one space after the =, which sysctl -a does not print; --format ini ignores spaces"
                )
            }
            return try add(key, value)
        }
        guard batch[last].value.count + value.count < Input.lineByteLimit else {
            throw fault("the lines of key '\(key)' have more than \(Input.lineByteLimit) bytes")
        }
        batch[last].value += [UInt8(ascii: "\n")] + value
        batchByteCount += 1 + value.count
    }

    /// Adds an entry to the batch; one that is full is committed before.
    private mutating func add(_ key: Key, _ value: [UInt8]) throws(Failure) {
        if lineNumber - firstLineOfBatch >= Self.batchLineCount
            || batchByteCount >= Self.batchByteLimit
        {
            try commit(upTo: lineNumber - 1)
        }
        batchByteCount += key.bytes.count + value.count
        batch.append((key, value))
    }

    private func key(of entry: ImportLine) throws(Failure) -> Key {
        do throws(StateError) {
            return try Key(bytes: name(of: entry))
        } catch {
            throw fault(error.message)
        }
    }

    private func name(of entry: ImportLine) -> [UInt8] {
        guard hasDots else { return prefix + entry.name }
        guard !entry.section.isEmpty else { return prefix + Self.path(ofSetting: entry.key) }
        return prefix + Self.path(ofSetting: entry.section) + [UInt8(ascii: "/")]
            + Self.path(ofSetting: entry.key)
    }

    /// The path of a setting below /proc/sys: dots become slashes, and slashes dots, unless the first
    /// of both is a slash; see sysctl.d(5).
    private static func path(ofSetting name: [UInt8]) -> [UInt8] {
        let (dot, slash) = (UInt8(ascii: "."), UInt8(ascii: "/"))
        guard name.first(where: { $0 == dot || $0 == slash }) == dot else { return name }
        return name.map { $0 == dot ? slash : $0 == slash ? dot : $0 }
    }

    private mutating func commit(upTo lastLine: Int) throws(Failure) {
        defer { firstLineOfBatch = lastLine + 1 }
        guard !batch.isEmpty else { return }
        do throws(StateError) {
            revision = try client.set(batch).revision
        } catch {
            throw .refused(
                StateError(
                    error.code,
                    "lines \(firstLineOfBatch) to \(lastLine): \(error.message)\(kept)"
                )
            )
        }
        entryCount += batch.count
        commitCount += 1
        batch.removeAll(keepingCapacity: true)
        batchByteCount = 0
        if showsProgress { Output.writeError("\r\(lastLine) lines") }
    }

    private func fault(_ message: String) -> Failure {
        .usage("line \(lineNumber): \(message)\(kept)")
    }

    /// The part of the input that is in the store.
    private var kept: String {
        commitCount > 0
            ? " (lines 1 to \(firstLineOfBatch - 1) are stored)" : " (nothing was stored)"
    }
}
