import StateClient
import StateModel

extension Statectl {
    /// `backup FILE|-`: everything at one revision, in a file.
    static func backup(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let name = invocation.operands[0]
        let earlier = invocation.text("--since")
        let isWhole = !invocation.has("--no-history")
        if invocation.has("--verify") {
            guard isWhole, earlier == nil else {
                throw .usage("backup: --verify makes no backup: it takes FILE only")
            }
            return try verify(String(decoding: name, as: UTF8.self), invocation, &output)
        }
        guard isWhole || earlier == nil else {
            throw .usage("backup: --since needs the history; leave out --no-history")
        }
        if let earlier, BackupTarget.isSameFile(name, earlier) {
            throw .usage(
                "backup: FILE and --since name the same file, "
                    + "\(earlier): name another one for the changes"
            )
        }
        let since = try earlier.map { path throws(Failure) in try start(after: path) }
        let client = try invocation.connect()
        let target = try BackupTarget(name)
        let progress = ProgressLine("backing up …")
        defer { progress.end() }
        var rowCount = 0
        var begun = try attempt(try client.beginBackup(includesHistory: isWhole, since: since))
        var next: [UInt8]?
        for tryCount in 1... {
            do throws(StateError) {
                next = try client.nextBackupPiece()
                break
            } catch {
                // The store was just being settled beyond the revision of this backup: another one has a
                // later revision.
                guard error.code == .compacted, since == nil, tryCount < 20 else {
                    throw .refused(error)
                }
                begun = try attempt(
                    try client.beginBackup(includesHistory: isWhole, since: since)
                )
            }
        }
        var piece: [UInt8]? = begun.piece
        while let bytes = piece {
            try target.write(bytes)
            rowCount += BackupFrame.rowCount(of: bytes)
            progress.show("backing up: \(rowCount) rows, \(target.byteCount >> 20) MiB")
            (piece, next) = (next, next == nil ? nil : try attempt(try client.nextBackupPiece()))
        }
        try target.finish()
        progress.end()
        guard name != "-".bytes else { return }
        let found = Found(
            revision: begun.revision,
            epoch: begun.epoch,
            since: since?.revision ?? 0,
            hasHistory: isWhole,
            rowCount: Int64(rowCount),
            byteCount: target.byteCount
        )
        found.write(invocation, &output)
    }

    /// Where a backup of the changes since another one begins; the other one is checked.
    private static func start(
        after path: String
    ) throws(Failure) -> (revision: Int64, epoch: String) {
        let found = try check(path)
        return (found.revision, found.epoch)
    }

    private static func verify(
        _ path: String,
        _ invocation: Invocation,
        _ output: inout Output
    ) throws(Failure) {
        try check(path).write(invocation, &output)
    }

    /// Reads and checks all of a file.
    private static func check(_ path: String) throws(Failure) -> Found {
        let reader: BackupReader
        var rowCount: Int64 = 0
        do throws(StateError) {
            reader = try BackupReader(path: path, countsKeys: true)
            while let frame = try reader.next() {
                if frame.kind == .rows { rowCount += Int64(frame.itemCount) }
            }
        } catch {
            // Nothing is known of a file that cannot be read; a damaged one is another answer.
            throw error.code == .storage ? .file(error.message) : .refused(error)
        }
        return Found(
            revision: reader.head.number("revision") ?? 0,
            epoch: reader.head.text("epoch") ?? "",
            since: reader.head.number("since") ?? 0,
            hasHistory: reader.head.text("history") == "yes",
            rowCount: rowCount,
            byteCount: reader.byteCount
        )
    }

    /// What a backup contains.
    private struct Found {
        let revision: Int64
        let epoch: String
        let since: Int64
        let hasHistory: Bool
        let rowCount: Int64
        let byteCount: Int64

        func write(_ invocation: Invocation, _ output: inout Output) {
            guard !invocation.isJSON else {
                return output.write(json: [
                    "revision": .number(revision), "epoch": .text(epoch), "since": .number(since),
                    "history": .json("\(hasHistory)".bytes), "rows": .number(rowCount),
                    "bytes": .number(byteCount),
                ])
            }
            let all = hasHistory ? "everything at" : "the present values at"
            let from = since > 0 ? "changes after revision \(since) up to" : all
            output.write(
                "\(from) revision \(revision) of epoch \(epoch): \(rowCount) row\(rowCount == 1 ? "" : "s"), "
                    + "\(byteCount) bytes\n"
            )
        }
    }
}
