/// A cause, stored once, however many records name it.
package final class InternedCause {
    package let cause: Cause
    package let number: UInt32
    /// ``Cause/description`` in UTF-8.
    let bytes: [UInt8]
    /// How many records and sessions name it.
    @exclusivity(unchecked) fileprivate(set) var referenceCount = 0

    fileprivate init(_ cause: Cause, number: UInt32, bytes: [UInt8]) {
        self.cause = cause
        self.number = number
        self.bytes = bytes
    }
}

/// The causes that records name by number, with reference counts: a cause that nothing names is
/// removed.
struct CauseTable {
    private var slots: [InternedCause?] = []
    private var free: [UInt32] = []
    private var numbers: [[UInt8]: UInt32] = [:]
    /// The last one interned from bytes: a load often meets the same one in succession.
    private var latest: InternedCause?

    /// How many times records and sessions name a cause.
    var referenceCount: Int { slots.reduce(0) { $0 + ($1?.referenceCount ?? 0) } }

    /// The cause with a number that a record names.
    subscript(number: UInt32) -> InternedCause {
        guard let cause = slots[Int(number)] else {
            preconditionFailure("a record names cause \(number), which is gone")
        }
        return cause
    }

    /// The cause with these bytes, counted once more.
    ///
    /// - Complexity: O(*n*) to hash; less for the one that was asked for last.
    mutating func intern(bytes: Bytes) -> InternedCause {
        if let latest, latest.referenceCount > 0,
            latest.bytes.withUnsafeBytes({ $0.isEqual(to: bytes) })
        {
            latest.referenceCount += 1
            return latest
        }
        let text = String(decoding: bytes, as: UTF8.self)
        let cause = Cause(text) ?? Cause(uid: .max, gid: .max, pid: 0, command: text)
        return intern(cause, bytes: Array(bytes))
    }

    /// The interned cause, counted once more.
    mutating func intern(_ cause: Cause) -> InternedCause {
        intern(cause, bytes: Array(cause.description.utf8))
    }

    private mutating func intern(_ cause: Cause, bytes: [UInt8]) -> InternedCause {
        let interned: InternedCause
        if let number = numbers[bytes] {
            interned = self[number]
        } else {
            let number = free.popLast() ?? UInt32(slots.count)
            interned = InternedCause(cause, number: number, bytes: bytes)
            if Int(number) == slots.count {
                slots.append(interned)
            } else {
                slots[Int(number)] = interned
            }
            numbers[bytes] = number
        }
        interned.referenceCount += 1
        latest = interned
        return interned
    }

    func retain(_ cause: InternedCause) { cause.referenceCount += 1 }

    mutating func release(_ number: UInt32) { release(self[number]) }

    mutating func release(_ cause: InternedCause) {
        cause.referenceCount -= 1
        guard cause.referenceCount == 0 else { return }
        slots[Int(cause.number)] = nil
        numbers[cause.bytes] = nil
        free.append(cause.number)
    }
}
