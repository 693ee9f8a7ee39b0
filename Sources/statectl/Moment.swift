import Glibc
import StateClient
import StateModel

/// A point in the history: a revision, or a time as `systemd.time(7)` writes it.
enum Moment: Hashable {
    case revision(Int64)
    /// Milliseconds since 1970.
    case time(Int64)
    case now

    /// Reads `12`, `now`, `today`, `yesterday`, `10 minutes ago`, `1h30m ago`, `-2h`, `@1700000000`,
    /// `07:30`, `2026-11-25`, `2026-11-25 07:30[:15[.123]]` (local), or a date with `T` and with `Z`
    /// (UTC) or an offset such as `+01:00`.
    ///
    /// - Returns: Nil for anything else.
    init?(_ text: String, now: Int64 = Moment.currentTime) {
        if let number = Int64(text), number >= 0, !text.hasPrefix("+") {
            self = .revision(number)
        } else if text == "now" {
            self = .now
        } else if let days = ["today": 0, "yesterday": -1][text] {
            self = .time(Moment.midnight(now, addingDays: days))
        } else if text.hasPrefix("@"), let seconds = Int64(text.dropFirst()), seconds >= 0,
            seconds <= .max / 1_000
        {
            self = .time(seconds * 1_000)
        } else if let length = Moment.past(text) {
            self = .time(max(0, now - length))
        } else if let time = Moment.date(text, now) {
            self = .time(time)
        } else {
            return nil
        }
    }

    /// The wall time in milliseconds since 1970.
    static var currentTime: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// How far a text such as `10 minutes ago` or `-2h` goes back, in milliseconds.
    private static func past(_ text: String) -> Int64? {
        var rest = Substring(text)
        if rest.hasPrefix("-") {
            rest = rest.dropFirst()
        } else if rest.hasSuffix(" ago") {
            rest = rest.dropLast(4)
        } else {
            return nil
        }
        var sum: Int64 = 0
        while true {
            rest = rest.drop { $0 == " " }
            guard !rest.isEmpty else { return text.isEmpty || sum == 0 ? nil : sum }
            let digits = rest.prefix { $0.isNumber }
            rest = rest.dropFirst(digits.count).drop { $0 == " " }
            let word = rest.prefix { $0.isLetter }
            rest = rest.dropFirst(word.count)
            guard let count = Int64(digits), count < 1_000_000_000, let unit = units[String(word)]
            else { return nil }
            let (next, overflows) = sum.addingReportingOverflow(count * unit)
            guard !overflows else { return nil }
            sum = next
        }
    }

    private static let units: [String: Int64] = {
        let names: [(Int64, String)] = [
            (1, "ms msec"), (1_000, "s sec second seconds"), (60_000, "m min minute minutes"),
            (3_600_000, "h hr hour hours"), (86_400_000, "d day days"),
            (604_800_000, "w week weeks"),
        ]
        let pairs = names.flatMap { unit, words in
            words.split(separator: " ").map { (String($0), unit) }
        }
        return Dictionary(uniqueKeysWithValues: pairs)
    }()

    private static func midnight(_ now: Int64, addingDays days: Int) -> Int64 {
        var parts = local(now)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (0, 0, 0)
        parts.tm_mday += Int32(days)
        parts.tm_isdst = -1
        return Int64(mktime(&parts)) * 1_000
    }

    private static func local(_ time: Int64) -> tm {
        var seconds = time_t(time / 1_000)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return parts
    }

    /// The time of a date, of a time of day, or of both.
    private static func date(_ text: String, _ now: Int64) -> Int64? {
        let (text, offset) = splitOffset(text)
        var words = text.split { $0 == " " || $0 == "T" }[...]
        guard !words.isEmpty else { return nil }
        var parts = local(now)
        (parts.tm_hour, parts.tm_min, parts.tm_sec, parts.tm_isdst) = (0, 0, 0, -1)
        if let day = words.first.flatMap({ numbers($0, "-", 3...3) }) {
            guard isDay(day) else { return nil }
            (parts.tm_year, parts.tm_mon, parts.tm_mday) = (day[0] - 1_900, day[1] - 1, day[2])
            words.removeFirst()
        } else if offset != nil {
            return nil
        }
        var milliseconds: Int64 = 0
        if let word = words.popFirst() {
            guard let clock = timeOfDay(word) else { return nil }
            (parts.tm_hour, parts.tm_min, parts.tm_sec) = (clock.hour, clock.minute, clock.second)
            milliseconds = clock.milliseconds
        }
        guard words.isEmpty else { return nil }
        let seconds = offset.map { Int64(timegm(&parts)) - $0 } ?? Int64(mktime(&parts))
        return seconds * 1_000 + milliseconds
    }

    /// Takes `Z`, or an offset such as `+01:00`, from the end.
    ///
    /// - Returns: The rest, and the offset in seconds; nil if the text has no offset: the time is local.
    private static func splitOffset(_ text: String) -> (Substring, Int64?) {
        if text.hasSuffix("Z") { return (text.dropLast(), 0) }
        let end = text.suffix(6)
        guard end.count == 6, end.hasPrefix("+") || end.hasPrefix("-"),
            let parts = numbers(end.dropFirst(), ":", 2...2), parts[0] < 24, parts[1] < 60
        else { return (text[...], nil) }
        let seconds = Int64(parts[0]) * 3_600 + Int64(parts[1]) * 60
        return (text.dropLast(6), end.hasPrefix("-") ? -seconds : seconds)
    }

    /// Whether the calendar has a year, month and day.
    private static func isDay(_ day: [Int32]) -> Bool {
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (day[0] - 1_900, day[1] - 1, day[2])
        _ = timegm(&parts)
        return day[0] >= 1_970 && parts.tm_mon == day[1] - 1 && parts.tm_mday == day[2]
    }

    /// Reads `07:30`, `07:30:15`, or `07:30:15.` and 1 to 9 digits, of which milliseconds count.
    private static func timeOfDay(
        _ text: Substring
    ) -> (hour: Int32, minute: Int32, second: Int32, milliseconds: Int64)? {
        let halves = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let time = numbers(halves[0], ":", halves.count == 2 ? 3...3 : 2...3),
            time[0] < 24, time[1] < 60, time.count < 3 || time[2] < 60
        else { return nil }
        let digits = halves.count == 2 ? halves[1] : "0"
        guard (1...9).contains(digits.count), digits.allSatisfy({ $0.isASCII && $0.isNumber }),
            let milliseconds = Int64((digits + "00").prefix(3))
        else { return nil }
        return (time[0], time[1], time.count == 3 ? time[2] : 0, milliseconds)
    }

    private static func numbers(
        _ text: Substring,
        _ divider: Character,
        _ count: ClosedRange<Int>
    ) -> [Int32]? {
        let parts = text.split(separator: divider, omittingEmptySubsequences: false)
        let numbers = parts.compactMap { part -> Int32? in
            part.allSatisfy { $0.isASCII && $0.isNumber } && part.count <= 4 ? Int32(part) : nil
        }
        return count.contains(parts.count) && numbers.count == parts.count ? numbers : nil
    }
}

extension Moment {
    /// Its revision; nil for now.
    func revision(_ client: Client) throws(StateError) -> Int64? {
        switch self {
        case .now: return nil
        case .revision(let revision): return revision
        case .time(let time): return try client.revision(at: time)
        }
    }
}

extension Moment {
    /// From which revision on a compaction to it keeps the history: 0 if more than that is gone already.
    func firstKept(_ client: Client) throws(StateError) -> Int64 {
        do throws(StateError) {
            if let revision = try revision(client) { return revision }
            // The newest revision may have a later time than now, if somebody has set the clock back.
            return try client.revision(at: 1 << 52)
        } catch {
            guard error.code == .compacted else { throw error }
            return 0
        }
    }
}

extension Invocation {
    /// The value of the option as a revision or a time; nil if it was not given.
    func moment(_ option: String) throws(Failure) -> Moment? {
        guard let text = text(option) else { return nil }
        guard let moment = Moment(text) else {
            throw .usage(
                "\(option) takes a revision, or a time such as '10 minutes ago', yesterday or '2026-11-25 07:30', not '\(text)'"
            )
        }
        return moment
    }
}
