import StateEngine
import StateLog

/// Which changes of a log the rules do not keep.
///
/// A change may go once its key has as many newer superseded ones as the rule keeps, or the one that
/// superseded it has the age.
struct HistoryTrim {
    /// A change that may go.
    struct Dropped {
        var place: HistoryPlace
        /// The revision of the change that superseded it.
        var successor: Int64
        var rule: Int
    }

    /// What may go, by the number of the segment, in order of places.
    private(set) var dropped: [UInt64: [Dropped]] = [:]

    private struct Version {
        var place: HistoryPlace
        /// The position of its segment.
        var segment: Int
    }

    /// The newest changes of a key; those before `first` may go.
    private struct Versions {
        let kept: KeptHistory
        var all: [Version] = []
        var first = 0
    }

    private let rules: HistoryRules
    private let segments: [LogView.Segment]
    private var keys: [[UInt8]: Versions] = [:]
    /// How many bytes of memory that takes, about.
    private var byteCount = 0
    /// The number of the first segment that was not looked at, for the next time; 0 if all were.
    private(set) var rest: UInt64 = 0

    /// What a key takes besides its bytes, and what a change takes.
    private static let (keyByteCount, changeByteCount) = (192, 64)

    /// Looks at all changes of keys that rules keep less of.
    ///
    /// - Parameters:
    ///   - view: The log.
    ///   - rules: The rules.
    ///   - number: The segment to begin with, if it is there still; 0 for the oldest.
    ///   - limit: No other segment is looked at once it takes so many bytes of memory.
    ///   - goesOn: Asked before each segment.
    /// - Throws: ``StateError/Code/corrupt``, naming the place; ``StateError/Code/storage``.
    /// - Complexity: O(*n*) in the bytes of the log.
    init(
        _ view: LogView,
        by rules: HistoryRules,
        from number: UInt64 = 0,
        upTo limit: Int = .max,
        while goesOn: () -> Bool
    ) throws(StateError) {
        (self.rules, segments) = (rules, view.segments)
        for position in segments.indices where segments[position].number >= number && goesOn() {
            guard byteCount < limit else {
                rest = segments[position].number
                break
            }
            try view.forEachChange(inSegment: position) { note($0, position) }
        }
        for versions in keys.values { takeOld(versions, at: view.age) }
        for number in dropped.keys { dropped[number]?.sort { $0.place < $1.place } }
    }

    private mutating func note(_ change: borrowing StoredChange, _ segment: Int) {
        guard let kept = rules.kept(of: change.key) else { return }
        let (key, version) = (Array(change.key), Version(place: change.place, segment: segment))
        byteCount += HistoryTrim.changeByteCount
        var versions: Versions
        if let known = keys.removeValue(forKey: key) {
            versions = known
        } else {
            byteCount += HistoryTrim.keyByteCount + key.count
            versions = Versions(kept: kept)
        }
        versions.all.append(version)
        while Int64(versions.all.count - versions.first - 1) > kept.changeCount {
            take(&versions)
        }
        keys[key] = versions
    }

    private mutating func takeOld(_ versions: Versions, at age: Int64) {
        var versions = versions
        while versions.first + 1 < versions.all.count {
            let successor = segments[versions.all[versions.first + 1].segment]
            guard successor.number != segments.last?.number,
                age - successor.endAge > versions.kept.ageMilliseconds
            else { return }
            take(&versions)
        }
    }

    /// Takes the oldest change of a key.
    private mutating func take(_ versions: inout Versions) {
        let (version, next) = (versions.all[versions.first], versions.all[versions.first + 1])
        let gone = Dropped(
            place: version.place,
            successor: next.place.revision,
            rule: versions.kept.rule
        )
        dropped[segments[version.segment].number, default: []].append(gone)
        versions.first += 1
        // What is gone takes memory only as long as it is little.
        guard versions.first >= 64, versions.first * 2 > versions.all.count else { return }
        versions.all.removeFirst(versions.first)
        versions.first = 0
    }
}
