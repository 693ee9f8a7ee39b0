import StateClient
import StateModel

/// What `top` shows, as lines that fit a terminal.
struct TopScreen {
    /// The newest at the end.
    private var history: [TopRates] = []
    private var users = UserNames()
    private let blocks: [Character]

    private static let historyCount = 512

    init() {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environmentVariable($0) }
            .first
        let encoding = locale?.lowercased().split(separator: ".").last
        let isUnicode = encoding?.hasPrefix("utf") ?? false
        blocks = Array(isUnicode ? " ▁▂▃▄▅▆▇█" : " .:-=+*#@")
    }

    mutating func add(_ rates: TopRates) {
        history.append(rates)
        if history.count > TopScreen.historyCount { history.removeFirst() }
    }

    /// The lines, at most `rows` of at most `columns`.
    mutating func lines(columns: Int, rows: Int) -> [String] {
        guard let rates = history.last else { return [] }
        var lines = head(rates, columns)
        let isWide = columns >= 120
        let room = max(0, rows - lines.count)
        // Three tables, or two of which one has two beside each other.
        let watchRows = min(rates.newest.watches.count, room / (isWide ? 2 : 3))
        let upper = room - watchRows - 2
        let keys = keyTable(rates)
        let writers = writerTable(rates)
        if isWide {
            let width = columns / 2 - 1
            let left = fitted(keys, rows: upper, columns: width)
            let right = fitted(writers, rows: upper, columns: columns - width - 2)
            for index in 0..<max(left.count, right.count) {
                let first = index < left.count ? left[index] : ""
                let second = index < right.count ? right[index] : ""
                lines.append(padded(first, width) + "  " + second)
            }
        } else {
            lines += fitted(keys, rows: upper - upper / 2, columns: columns)
            lines += fitted(writers, rows: upper / 2, columns: columns)
        }
        lines += fitted(watchTable(rates), rows: watchRows + 2, columns: columns)
        return lines.prefix(rows).map { cut($0, columns) }
    }

    // MARK: Head

    private func head(_ rates: TopRates, _ columns: Int) -> [String] {
        func field(_ name: String) -> String { rates.newest.status[name]?.text ?? "-" }
        let uptime = rates.newest.status["uptime"]?.number ?? 0
        let storage = field("storage") == "ok" ? "storage ok" : "STORAGE: \(field("storage"))"
        var title = "stated \(field("version"))  up \(TopScreen.time(uptime))  "
        title += "revision \(field("revision"))  keys \(field("keys"))  "
        title += "clients \(field("clients"))  watches \(field("watches"))  \(storage)"
        let width = max(8, columns - 34)
        func row(_ name: String, _ value: String, _ path: KeyPath<TopRates, Double>) -> String {
            let line = sparkline(history.suffix(width).map { $0[keyPath: path] })
            return padded(name, 12) + padded(value, 20) + line
        }
        let mean = TopScreen.number(rates.meanLatency)
        let high = TopScreen.number(rates.highLatency)
        return [
            StateError.printable(title),
            row("commits/s", TopScreen.number(rates.commits), \.commits),
            row("changes/s", TopScreen.number(rates.changes), \.changes),
            row("bytes/s", TopScreen.size(rates.bytes), \.bytes),
            row("commands/s", TopScreen.number(rates.commands), \.commands),
            row("sync ms", "\(mean), p99 \(high)", \.meanLatency),
        ]
    }

    private func sparkline(_ values: [Double]) -> String {
        let most = values.max() ?? 0
        guard most > 0 else { return String(repeating: blocks[0], count: values.count) }
        return String(
            values.map { value in
                let step = Int((value / most * Double(blocks.count - 1)).rounded(.up))
                return blocks[min(max(step, 0), blocks.count - 1)]
            }
        )
    }

    // MARK: Tables

    private func keyTable(_ rates: TopRates) -> [[String]] {
        [["CHANGES/S", "BYTES/S", "KEY"]]
            + rates.keys.map { key in
                [TopScreen.number(key.changes), TopScreen.size(key.bytes), shown(key.name)]
            }
    }

    private mutating func writerTable(_ rates: TopRates) -> [[String]] {
        var rows = [["CHANGES/S", "BYTES/S", "PID", "USER", "COMMAND"]]
        for writer in rates.writers {
            let cause = Cause(String(decoding: writer.name, as: UTF8.self))
            let name = cause.map { $0.client.isEmpty ? $0.command : "\($0.command) (\($0.client))" }
            rows.append([
                TopScreen.number(writer.changes), TopScreen.size(writer.bytes),
                cause.map { "\($0.pid)" } ?? "-", cause.map { users.name(of: $0.uid) } ?? "-",
                shown((name ?? String(decoding: writer.name, as: UTF8.self)).bytes),
            ])
        }
        return rows
    }

    private mutating func watchTable(_ rates: TopRates) -> [[String]] {
        var rows = [["LAG", "STATE", "PID", "USER", "PATTERNS"]]
        for watch in rates.newest.watches.sorted(by: { $0.lag > $1.lag }) {
            let user = users.name(of: UInt32(truncatingIfNeeded: watch.uid))
            let patterns = Array(watch.patterns.joined(separator: " ".bytes))
            rows.append(["\(watch.lag)", watch.state, "\(watch.pid)", user, shown(patterns)])
        }
        return rows
    }

    /// An empty line, the names of the columns and as many rows as there is room for, aligned.
    private func fitted(_ table: [[String]], rows: Int, columns: Int) -> [String] {
        guard rows >= 2 else { return [] }
        let kept = table.prefix(rows - 1)
        let widths = table[0].indices.map { column in kept.map { $0[column].count }.max() ?? 0 }
        return [""]
            + kept.map { row in
                let cells = row.indices.dropLast().map { padded(row[$0], widths[$0] + 2) }
                return cut(cells.joined() + (row.last ?? ""), columns)
            }
    }

    private func shown(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        bytes.withUnsafeBytes { EscapedText.append($0, to: &text) }
        return String(decoding: text, as: UTF8.self)
    }

    private func padded(_ text: String, _ width: Int) -> String {
        let text = cut(text, width)
        return text + String(repeating: " ", count: width - text.count)
    }

    private func cut(_ text: String, _ width: Int) -> String {
        text.count <= width ? text : String(text.prefix(max(0, width)))
    }

    // MARK: Numbers

    static func number(_ value: Double) -> String {
        guard value < 100 else { return String(Int64(value.rounded())) }
        let tenths = Int64((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }

    static func size(_ value: Double) -> String {
        var (value, unit) = (value, 0)
        while value >= 1_024, unit < 4 { (value, unit) = (value / 1_024, unit + 1) }
        return number(value) + ["", "KiB", "MiB", "GiB", "TiB"][unit]
    }

    static func time(_ seconds: Int64) -> String {
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60)
        if days > 0 { return "\(days)d\(hours)h" }
        if hours > 0 { return "\(hours)h\(minutes)m" }
        return minutes > 0 ? "\(minutes)m" : "\(seconds)s"
    }
}
