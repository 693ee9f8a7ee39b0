import Glibc

/// Keys that an earlier process had in memory, whatever the rules are now: the history has neither
/// their values nor their removal.
package struct ForgottenKeys: Hashable, Sendable {
    package var pattern: Pattern
    /// Not below any revision that was published while they were in memory.
    package var lastRevision: Int64

    package init(pattern: Pattern, lastRevision: Int64) {
        (self.pattern, self.lastRevision) = (pattern, lastRevision)
    }
}

/// The record of which keys are or were in memory, beside the store; written before the first of
/// them is published.
///
/// A line for each pattern: the last revision of the process that had them in memory, or `-` for
/// this one, a tab, the pattern.
///
/// ```
/// 16777216    cache/
/// -    session/
/// ```
package struct MemoryKeysFile {
    /// By pattern; nil is this process.
    private typealias Lines = [Pattern: Int64?]

    private let path: String

    package init(path: String) { self.path = path }

    /// Records that the previous process has ended.
    ///
    /// If the file cannot be written (the disk is full), it stays unchanged, which is safe: the
    /// next process then treats the keys of the last two processes as those of the last.
    ///
    /// - Parameters:
    ///   - revision: Not below any that it acknowledged.
    ///   - onFailure: Called if the file cannot be written.
    /// - Returns: The keys that earlier processes had in memory.
    /// - Throws: ``StateError/Code/storage``, naming the file, if it cannot be read.
    package func beginLife(
        after revision: Int64,
        onFailure: (StateError) -> Void
    ) throws(StateError) -> [ForgottenKeys] {
        let lines = try read()
        let ended = lines.mapValues { Int64?.some($0 ?? revision) }
        if ended != lines {
            do throws(StateError) { try write(ended) } catch { onFailure(error) }
        }
        return ended.map { ForgottenKeys(pattern: $0, lastRevision: $1 ?? revision) }
    }

    /// Records that keys of these patterns may be in memory from now on.
    ///
    /// - Throws: ``StateError/Code/storage``, naming the file.
    package func add(_ patterns: [Pattern]) throws(StateError) {
        let lines = try read()
        var changed = lines
        for pattern in patterns { changed.updateValue(nil, forKey: pattern) }
        if changed != lines { try write(changed) }
    }

    private func read() throws(StateError) -> Lines {
        guard let file = fopen(path, "re") else {
            guard errno == ENOENT else { throw failed("read") }
            return [:]
        }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 {
            bytes += chunk[..<count]
        }
        guard ferror(file) == 0 else { throw failed("read") }
        var lines: Lines = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: "\t", maxSplits: 1)
            guard parts.count == 2, let pattern = try? Pattern(String(parts[1])) else { continue }
            lines.updateValue(Int64(parts[0]), forKey: pattern)
        }
        return lines
    }

    private func write(_ lines: Lines) throws(StateError) {
        let texts = lines.map { "\($1.map(String.init) ?? "-")\t\($0)\n" }
        try WholeFile.replace(path, with: Array(texts.sorted().joined().utf8))
    }

    private func failed(_ what: String) -> StateError {
        StateError(.storage, "\(path) cannot be \(what): \(lastSystemError())")
    }
}
