/// Finds the patterns that match a key, by one walk over the key; the patterns never change.
///
/// It is like ``LiteralTable``, but manages its memory by hand: each write under rules uses it, and
/// the arrays of a mutable table were retained and released nine times per write, an eighth of the
/// loop's time.
///
/// Everything is written in `init` and freed in `deinit`: the proof of `@unchecked Sendable`.
final class PatternIndex: @unchecked Sendable {
    /// The patterns with one literal.
    private struct Slot {
        var hash = 0
        /// The start of its literal, in the bytes of all literals.
        var start = 0
        var byteCount = 0
        /// The index of its first match, among all matches.
        var firstMatch = 0
        /// 0 if the slot is free.
        var matchCount = 0
    }

    private struct Match {
        var pattern: Int
        var kind: Pattern.Kind
    }

    private let patterns: [Pattern]
    private let literals: UnsafeMutableBufferPointer<UInt8>
    private let matches: UnsafeMutableBufferPointer<Match>
    /// The count is a power of two; at most half of the slots are taken.
    private let slots: UnsafeMutableBufferPointer<Slot>
    /// A bit for each eighth of a slot, by further bits of the hash.
    ///
    /// Most hashes without a slot are rejected here, in a cache line that the next key needs too.
    private let filter: UnsafeMutableBufferPointer<UInt64>
    /// Whether there is a literal of each length.
    private let lengths: UnsafeMutableBufferPointer<Bool>

    init(_ patterns: [Pattern]) {
        self.patterns = patterns
        var groups: [[UInt8]: [Int]] = [:]
        for (index, pattern) in patterns.enumerated() {
            groups[pattern.literal, default: []].append(index)
        }
        var slotCount = 2
        while slotCount < groups.count * 2 { slotCount *= 2 }
        slots = .allocate(capacity: slotCount)
        slots.initialize(repeating: Slot())
        filter = .allocate(capacity: max(1, slotCount * 8 / 64))
        filter.initialize(repeating: 0)
        literals = .allocate(capacity: groups.keys.reduce(0) { $0 + $1.count })
        matches = .allocate(capacity: patterns.count)
        lengths = .allocate(capacity: (groups.keys.map(\.count).max() ?? -1) + 1)
        lengths.initialize(repeating: false)
        var (byteCount, matchCount) = (0, 0)
        for (literal, members) in groups {
            var slot = Slot(hash: LiteralHash(of: literal).value, start: byteCount)
            slot.byteCount = literal.count
            slot.firstMatch = matchCount
            slot.matchCount = members.count
            for byte in literal {
                literals.initializeElement(at: byteCount, to: byte)
                byteCount += 1
            }
            for member in members {
                let match = Match(pattern: member, kind: patterns[member].kind)
                matches.initializeElement(at: matchCount, to: match)
                matchCount += 1
            }
            lengths[literal.count] = true
            var place = slot.hash & (slotCount - 1)
            while slots[place].matchCount > 0 { place = (place + 1) & (slotCount - 1) }
            slots[place] = slot
            let bit = filterBit(slot.hash)
            filter[bit >> 6] |= 1 << UInt64(bit & 63)
        }
    }

    deinit {
        literals.deallocate()
        matches.deallocate()
        slots.deallocate()
        filter.deallocate()
        lengths.deallocate()
    }

    /// Calls `body` with the index of each pattern that matches `key`, the shortest literal first;
    /// always in the same order.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, plus the globs whose literal it begins with.
    @inline(__always)
    func forEachMatch(_ key: Bytes, _ body: (Int) -> Void) {
        var hash = LiteralHash()
        for length in 0..<min(key.count + 1, lengths.count) {
            if length > 0 { hash.take(key[length - 1]) }
            guard lengths[length], isLikely(hash.value),
                let slot = slot(hash.value, key, length)
            else { continue }
            for place in slot.firstMatch..<slot.firstMatch + slot.matchCount {
                let match = matches[place]
                switch match.kind {
                case .prefix: body(match.pattern)
                case .key: if length == key.count { body(match.pattern) }
                case .glob: if patterns[match.pattern].matches(key) { body(match.pattern) }
                }
            }
        }
    }

    @inline(__always)
    private func filterBit(_ hash: Int) -> Int { hash & (filter.count * 64 - 1) }

    /// Returns false if no literal has this hash.
    @inline(__always)
    private func isLikely(_ hash: Int) -> Bool {
        let bit = filterBit(hash)
        return filter[bit >> 6] >> UInt64(bit & 63) & 1 == 1
    }

    /// The slot of the patterns whose literal is the first `length` bytes of `key`.
    private func slot(_ hash: Int, _ key: Bytes, _ length: Int) -> Slot? {
        var place = hash & (slots.count - 1)
        while slots[place].matchCount > 0 {
            let slot = slots[place]
            if slot.hash == hash, slot.byteCount == length {
                let literal = Bytes(
                    rebasing: UnsafeRawBufferPointer(literals)[slot.start..<slot.start + length]
                )
                if key.hasPrefix(literal) { return slot }
            }
            place = (place + 1) & (slots.count - 1)
        }
        return nil
    }
}
