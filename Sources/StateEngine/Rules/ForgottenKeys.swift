import Glibc

/// Keys that were in memory in a former life, whatever the rules say now: the history says nothing of their values, nor that they are gone.
package struct ForgottenKeys: Hashable, Sendable {
    package var pattern: Pattern
    /// Not below any revision that was told while they were.
    package var lastRevision: Int64

    package init(pattern: Pattern, lastRevision: Int64) {
        (self.pattern, self.lastRevision) = (pattern, lastRevision)
    }
}

/// The note of which keys are in memory and which were, beside the store; written before the first of them is told.
///
/// A line for each pattern: the last revision of the life that had them in memory, or `-` for this one, a tab, the pattern.
///
/// ```
/// 16777216    cache/
/// -    session/
/// ```
package struct MemoryKeysFile {
    /// By pattern; nil is this life.
    private typealias Lines = [Pattern: Int64?]

    private let path: String

    package init(path: String) { self.path = path }

    /// Notes that the life before this one has ended.
    ///
    /// A file that cannot be written (the disk is full) stays as it is, which is safe: the next life takes the keys of the last two
    /// for those of the last.
    ///
    /// - Parameters:
    ///   - revision: Not below any that it acknowledged.
    ///   - onFailure: Called if the file cannot be written.
    /// - Returns: What former lives had in memory.
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

    /// Notes that keys of these patterns may be in memory from now on.
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
