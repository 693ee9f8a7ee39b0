import Glibc
import StateClient
import StateModel

extension Statectl {
    /// `import FILE|-`: one commit for each 1,000 lines.
    static func importEntries(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let prefix = invocation.value("--prefix") ?? []
        guard prefix.isEmpty || prefix.last == UInt8(ascii: "/") else {
            let text = String(decoding: prefix, as: UTF8.self)
            throw .usage("--prefix must end in '/': '\(text)/'")
        }
        var input = try Input(path: invocation.operands[0])
        var importer = Importer(
            client: try invocation.connect(),
            prefix: prefix,
            turnsDotsIntoSlashes: invocation.has("--dots")
        )
        while let line = try input.nextLine() { try importer.take(line) }
        try importer.finish()
        let (count, commitCount) = (importer.entryCount, importer.commitCount)
        guard !invocation.isJSON else {
            return output.write(json: [
                "revision": .number(importer.revision), "count": .number(Int64(count)),
                "commits": .number(Int64(commitCount)),
            ])
        }
        let revision = commitCount > 0 ? "; revision \(importer.revision)" : ""
        let noun = count == 1 ? "entry" : "entries"
        let unit = commitCount == 1 ? "commit" : "commits"
        output.write("\(count) \(noun) in \(commitCount) \(unit)\(revision)\n")
    }
}

/// Lines on their way into commits.
///
/// A batch is sent only when the one before it is durable. So after a failure exactly the lines
/// before the failed batch are stored.
private struct Importer {
    let client: Client
    let prefix: [UInt8]
    let turnsDotsIntoSlashes: Bool
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

    init(client: Client, prefix: [UInt8], turnsDotsIntoSlashes: Bool) {
        self.client = client
        self.prefix = prefix
        self.turnsDotsIntoSlashes = turnsDotsIntoSlashes
        batch.reserveCapacity(Self.batchLineCount)
    }

    mutating func take(_ line: ArraySlice<UInt8>) throws(Failure) {
        lineNumber += 1
        if let (key, value) = try read(line) {
            batchByteCount += key.bytes.count + value.count
            batch.append((key, value))
        }
        if lineNumber - firstLineOfBatch + 1 >= Self.batchLineCount
            || batchByteCount >= Self.batchByteLimit
        {
            try commit()
        }
    }

    mutating func finish() throws(Failure) {
        try commit()
        if showsProgress, commitCount > 0 { Output.writeError("\r\u{1B}[K") }
    }

    private func read(_ line: ArraySlice<UInt8>) throws(Failure) -> (Key, [UInt8])? {
        do throws(StateError) {
            let parsed = try line.withUnsafeBufferPointer { (line) throws(StateError) in
                try ImportLine(Bytes(line))
            }
            guard let parsed else { return nil }
            var name = parsed.key
            if turnsDotsIntoSlashes {
                for index in name.indices where name[index] == UInt8(ascii: ".") {
                    name[index] = UInt8(ascii: "/")
                }
            }
            return (try Key(bytes: prefix + name), parsed.value)
        } catch {
            throw .usage("line \(lineNumber): \(error.message)\(kept)")
        }
    }

    private mutating func commit() throws(Failure) {
        defer { firstLineOfBatch = lineNumber + 1 }
        guard !batch.isEmpty else { return }
        do throws(StateError) {
            revision = try client.set(batch).revision
        } catch {
            throw .refused(
                StateError(
                    error.code,
                    "lines \(firstLineOfBatch) to \(lineNumber): \(error.message)\(kept)"
                )
            )
        }
        entryCount += batch.count
        commitCount += 1
        batch.removeAll(keepingCapacity: true)
        batchByteCount = 0
        if showsProgress { Output.writeError("\r\(lineNumber) lines") }
    }

    /// The part of the input that is in the store.
    private var kept: String {
        firstLineOfBatch > 1
            ? " (lines 1 to \(firstLineOfBatch - 1) are stored)" : " (nothing was stored)"
    }
}
