import CLinux
import StateEngine
import StateWire

/// Commands of Redis about parts of values, and with comparisons.
extension StringCommands {
    func run(_ command: Command.ValueCommand, _ context: inout CommandContext) throws(StateError) {
        switch command {
        case .set(let key, let value, let comparison, let expiry, let returnsOld):
            try set(key, to: value, expiry, returnsOld: returnsOld, &context) { old in
                comparison.holds(for: old?.value)
            }
        case .delete(let key, let comparison):
            let isDone = try context.write { (transaction) throws(StateError) -> Bool in
                guard let old = try transaction.look(at: key), comparison.holds(for: old.value)
                else { return false }
                return try transaction.delete(key)
            }
            context.output.writeInteger(isDone ? 1 : 0)
        case .digest(let key):
            guard let value = try context.look(at: key)?.value else {
                return context.output.writeNull(context.version)
            }
            // 1 ms for 8 MiB.
            context.execution?.visitsLeft -= value.count >> 16
            let digits = String(ValueHash.xxh3(value), radix: 16)
            context.output.writeBulk(String(repeating: "0", count: 16 - digits.count) + digits)
        case .range(let key, let first, let last):
            let value = try context.look(at: key)?.value ?? Bytes(start: nil, count: 0)
            let range = value.range(first, last)
            context.output.writeBulk(value.slice(range.lowerBound, range.upperBound))
        case .setRange(let key, let offset, let part):
            try setRange(of: key, offset, part, &context)
        case .addFloat(let key, let number): try addFloat(number, to: key, &context)
        case .setAll(let pairs, let needsPresence, let expiry):
            try setAll(pairs, needsPresence, expiry, &context)
        case .script(let script, let keys, let arguments):
            try run(script, keys, arguments, &context)
        }
    }

    private func setRange(
        of key: Bytes,
        _ offset: Int,
        _ part: Bytes,
        _ context: inout CommandContext
    ) throws(StateError) {
        let limit = settings.options.limits.valueByteCount
        let length = try context.write { (transaction) throws(StateError) -> Int in
            let old = try transaction.look(at: key)?.value
            guard part.count > 0 else { return old?.count ?? 0 }
            let (end, overflows) = offset.addingReportingOverflow(part.count)
            guard !overflows, end <= limit else {
                throw StateError(
                    .err,
                    "string exceeds maximum allowed size (\(limit) bytes, limits.valueBytes)"
                )
            }
            var bytes = old.map { Array($0) } ?? []
            if bytes.count < end { bytes += repeatElement(0, count: end - bytes.count) }
            bytes.replaceSubrange(offset..<end, with: part)
            try bytes.withBorrowed { (bytes) throws(StateError) in
                try transaction.set(
                    key,
                    to: bytes,
                    isConditional: true,
                    expiry: .kept,
                    operation: .setRange
                )
            }
            return bytes.count
        }
        context.output.writeInteger(Int64(length))
    }

    private func addFloat(
        _ number: Bytes,
        to key: Bytes,
        _ context: inout CommandContext
    ) throws(StateError) {
        let sum = try context.write { (transaction) throws(StateError) -> [UInt8] in
            let sum = try FloatingSum.add(number, to: try transaction.look(at: key)?.value)
            try sum.withBorrowed { (sum) throws(StateError) in
                try transaction.set(
                    key,
                    to: sum,
                    isConditional: true,
                    expiry: .kept,
                    operation: .addFloat
                )
            }
            return sum
        }
        context.output.writeBulk(sum)
    }

    private func setAll(
        _ pairs: Arguments,
        _ needsPresence: Bool?,
        _ expiry: Expiry,
        _ context: inout CommandContext
    ) throws(StateError) {
        let isDone = try context.write { (transaction) throws(StateError) -> Bool in
            let places = stride(from: 0, to: pairs.count, by: 2)
            if let needsPresence {
                for index in places {
                    let isPresent = try transaction.look(at: pairs[index]) != nil
                    guard isPresent == needsPresence else { return false }
                }
            }
            for index in places {
                try transaction.set(
                    pairs[index],
                    to: pairs[index + 1],
                    isConditional: needsPresence != nil || expiry == .kept,
                    expiry: expiry,
                    operation: expiry.operation
                )
            }
            return true
        }
        context.output.writeInteger(isDone ? 1 : 0)
    }
}

/// Sums of floating-point numbers as INCRBYFLOAT makes them: in `long double`, which Swift has on
/// some processors only.
enum FloatingSum {
    private static let capacity = 5_120

    /// - Throws: ``StateError/Code/err`` in the words of Redis, if one of them is no number or the
    ///   sum is not finite.
    static func add(_ number: Bytes, to value: Bytes?) throws(StateError) -> [UInt8] {
        var digits = [CChar](repeating: 0, count: capacity)
        let count = clinux_add_decimals(
            value?.baseAddress,
            value?.count ?? 0,
            number.baseAddress,
            number.count,
            &digits,
            digits.count
        )
        guard count != -1 else { throw StateError(.err, "value is not a valid float") }
        guard count > 0 else {
            throw StateError(.err, "increment would produce NaN or Infinity")
        }
        return digits.prefix(Int(count)).map { UInt8(bitPattern: $0) }
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes from `first` to `last`, as GETRANGE counts them: from the end if negative.
    fileprivate func range(_ first: Int64, _ last: Int64) -> Range<Int> {
        let count = Int64(self.count)
        if first < 0, last < 0, first > last { return 0..<0 }
        let start = Swift.max(0, first < 0 ? first + count : first)
        let end = Swift.min(count - 1, Swift.max(0, last < 0 ? last + count : last))
        guard count > 0, start <= end else { return 0..<0 }
        return Int(start)..<Int(end) + 1
    }
}
