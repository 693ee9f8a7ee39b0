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
    /// `07:30`, `2026-11-25`, `2026-11-25 07:30[:15]` (local), or the same with `T` and `Z` (UTC).
    ///
    /// - Returns: Nil for anything else.
    init?(_ text: String, now: Int64 = Moment.currentTime) {
        if let number = Int64(text), number >= 0, !text.hasPrefix("+") {
            self = .revision(number)
        } else if text == "now" {
            self = .now
        } else if let days = ["today": 0, "yesterday": -1][text] {
            self = .time(Moment.midnight(now, addingDays: days))
        } else if text.hasPrefix("@"), let seconds = Int64(text.dropFirst()), seconds >= 0 {
            self = .time(seconds * 1_000)
        } else if let length = Moment.past(text) {
            self = .time(now - length)
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
            sum += count * unit
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
        let isUniversal = text.hasSuffix("Z")
        let words = text.dropLast(isUniversal ? 1 : 0).split { $0 == " " || $0 == "T" }
        var parts = local(now)
        (parts.tm_hour, parts.tm_min, parts.tm_sec, parts.tm_isdst) = (0, 0, 0, -1)
        var rest = words[...]
        if let day = rest.first.flatMap({ numbers($0, "-", 3...3) }), day[0] >= 1_970,
            (1...12).contains(day[1]), (1...31).contains(day[2])
        {
            (parts.tm_year, parts.tm_mon, parts.tm_mday) = (day[0] - 1_900, day[1] - 1, day[2])
            rest = rest.dropFirst()
        } else if isUniversal {
            return nil
        }
        if let clock = rest.first {
            let clock = clock.split(separator: ".", maxSplits: 1)[0]
            guard let time = numbers(clock, ":", 2...3), time[0] < 24, time[1] < 60,
                time.count < 3 || time[2] < 61
            else { return nil }
            (parts.tm_hour, parts.tm_min) = (time[0], time[1])
            parts.tm_sec = time.count == 3 ? time[2] : 0
            rest = rest.dropFirst()
        }
        guard !words.isEmpty, rest.isEmpty else { return nil }
        return Int64(isUniversal ? timegm(&parts) : mktime(&parts)) * 1_000
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
