import StatePlatform
import StateSystem

/// Keys of which an earlier process published changes that the history does not have, whatever the
/// rules are now.
package struct ForgottenKeys: Hashable, Sendable {
    package var pattern: Pattern
    /// The history has all their changes up to this revision; -1 if they were in memory only.
    package var storedRevision: Int64
    /// Not below any revision that was published by that process.
    package var lastRevision: Int64

    package init(pattern: Pattern, storedRevision: Int64 = -1, lastRevision: Int64) {
        self.pattern = pattern
        self.storedRevision = storedRevision
        self.lastRevision = lastRevision
    }
}

/// The record of which keys are or were in memory only, or stored later than published; beside the
/// store, and written before the first of them is published.
///
/// A line for each pattern: the last revision of the process that had them in memory, or `-` for
/// this one, a tab, the pattern. For keys that are stored later than published: `~` for this
/// process; after a crash, the last revision of which the history has everything, `~`, the last
/// revision of that process, and once more `~` if this one has them, too. A version that does not
/// know this form takes it for `-`.
///
/// ```
/// 16777216    cache/
/// -    session/
/// 4711~16777216    sensor/
/// ```
package struct MemoryKeysFile {
    private struct Line: Hashable {
        let pattern: Pattern
        /// Whether the keys were stored, later than published.
        let isDeferred: Bool
    }

    /// What a line says of its keys.
    fileprivate struct Fate: Hashable {
        /// The history may lack changes above this revision; -1 for keys in memory only.
        var storedRevision: Int64 = -1
        /// The history has everything above this revision, except of this process; 0 if it lacks
        /// nothing.
        var lastRevision: Int64 = 0
        /// Whether this process has such keys.
        var isRunning = false
    }

    private typealias Lines = [Line: Fate]

    private let path: String

    package init(path: String) { self.path = path }

    /// Records that the previous process has ended.
    ///
    /// If the file cannot be written (the disk is full), it stays unchanged, which is safe: the
    /// next process then treats the keys of the last two processes as those of the last.
    ///
    /// - Parameters:
    ///   - revision: Not below any that it acknowledged.
    ///   - storedRevision: Storage has everything that it acknowledged up to this one.
    ///   - hasAllDeferred: Whether storage also has all that it was to store later.
    ///   - onFailure: Called if the file cannot be written.
    /// - Returns: The keys of which earlier processes published what the history does not have.
    /// - Throws: ``StateError/Code/storage``, naming the file, if it cannot be read.
    package func beginLife(
        after revision: Int64,
        storedThrough storedRevision: Int64,
        hasAllDeferred: Bool = false,
        onFailure: (StateError) -> Void
    ) throws(StateError) -> [ForgottenKeys] {
        let lines = try read()
        var ended = lines
        for (line, fate) in lines where fate.isRunning {
            if line.isDeferred, hasAllDeferred {
                ended[line] = fate.lastRevision > 0 ? fate.ended : nil
                continue
            }
            let stored = line.isDeferred ? storedRevision : -1
            let isFirst = fate.lastRevision == 0
            ended[line] = Fate(
                storedRevision: isFirst ? stored : min(fate.storedRevision, stored),
                lastRevision: revision
            )
        }
        if ended != lines {
            do throws(StateError) { try write(ended) } catch { onFailure(error) }
        }
        return ended.map {
            ForgottenKeys(
                pattern: $0.pattern,
                storedRevision: $1.storedRevision,
                lastRevision: $1.lastRevision
            )
        }
    }

    /// Records that this process ends, and that storage has everything that it published later.
    ///
    /// - Throws: ``StateError/Code/storage``, naming the file, which is unchanged: watches may then
    ///   get a gap although nothing is lost.
    package func endLife() throws(StateError) {
        let lines = try read()
        var ended: Lines = [:]
        for (line, var fate) in lines {
            if line.isDeferred { fate.isRunning = false }
            if fate.isRunning || fate.lastRevision > 0 { ended[line] = fate }
        }
        if ended != lines { try write(ended) }
    }

    /// Records that keys of these patterns may be in memory only from now on, or stored later than
    /// published.
    ///
    /// - Throws: ``StateError/Code/storage``, naming the file.
    package func add(
        _ patterns: [Pattern],
        deferred: [Pattern] = []
    ) throws(StateError) {
        let lines = try read()
        var changed = lines
        for pattern in patterns {
            changed[Line(pattern: pattern, isDeferred: false)] = Fate(isRunning: true)
        }
        for pattern in deferred {
            // What an earlier crash has lost stays so.
            changed[Line(pattern: pattern, isDeferred: true), default: Fate()].isRunning = true
        }
        if changed != lines { try write(changed) }
    }

    private func read() throws(StateError) -> Lines {
        let file: Int32
        do throws(OpenFailure) { file = try NamedFile.open(path, O_RDONLY) } catch {
            if error.isAbsence { return [:] }
            throw StateError(.storage, error.sentence(path, "read"))
        }
        defer { close(file) }
        guard let bytes = NamedFile.contents(of: file) else {
            throw StateError(.storage, "\(path) cannot be read: \(lastSystemError())")
        }
        var lines: Lines = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: "\t", maxSplits: 1)
            guard parts.count == 2, let pattern = try? Pattern(String(parts[1])) else { continue }
            let line = Line(pattern: pattern, isDeferred: parts[0].contains("~"))
            lines[line] = Fate(parts[0], isDeferred: line.isDeferred)
        }
        return lines
    }

    private func write(_ lines: Lines) throws(StateError) {
        let texts = lines.map { line, fate in
            "\(fate.text(isDeferred: line.isDeferred))\t\(line.pattern)\n"
        }
        try WholeFile.replace(path, with: Array(texts.sorted().joined().utf8))
    }
}

extension MemoryKeysFile.Fate {
    fileprivate init(_ text: Substring, isDeferred: Bool) {
        guard isDeferred else {
            self.init(lastRevision: Int64(text) ?? 0, isRunning: Int64(text) == nil)
            return
        }
        let parts = text.split(separator: "~", omittingEmptySubsequences: false).map { Int64($0) }
        let isGap = parts.count > 1 && parts[0] != nil && parts[1] != nil
        self.init(
            storedRevision: isGap ? parts[0] ?? -1 : -1,
            lastRevision: isGap ? parts[1] ?? 0 : 0,
            isRunning: !isGap || parts.count > 2
        )
    }

    /// The same once that process has ended, and nothing of it is missing.
    fileprivate var ended: Self {
        var ended = self
        ended.isRunning = false
        return ended
    }

    fileprivate func text(isDeferred: Bool) -> String {
        guard isDeferred else { return isRunning ? "-" : "\(lastRevision)" }
        guard lastRevision > 0 else { return "~" }
        return "\(storedRevision)~\(lastRevision)" + (isRunning ? "~" : "")
    }
}
