/// A request whose key is replaced each time: no formatting while measuring.
///
/// Keys are `key:` and twelve digits, as in `redis-benchmark -r`, so that each program finds the
/// other's.
struct RequestTemplate {
    private var bytes: [UInt8]
    private let lastDigit: Int

    static let keyDigits = 12

    /// Gets keys with `folder` before `key:`.
    static func get(folder: String = "") -> RequestTemplate {
        RequestTemplate(
            "*2\r\n$3\r\nGET\r\n$\(16 + folder.utf8.count)\r\n\(folder)key:",
            "\r\n"
        )
    }

    /// Sets keys with `folder` before `key:`; the value is of letters, or a number with that many
    /// digits.
    static func set(
        valueByteCount: Int,
        isNumber: Bool = false,
        folder: String = ""
    ) -> RequestTemplate {
        var random = SplitMix(seed: 64)
        let (first, count) = isNumber ? (49, 9) : (97, 26)
        let letters = (0..<valueByteCount).map { _ in UInt8(first + random.next(below: count)) }
        let value = String(decoding: letters, as: UTF8.self)
        return RequestTemplate(
            "*3\r\n$3\r\nSET\r\n$\(16 + folder.utf8.count)\r\n\(folder)key:",
            "\r\n$\(valueByteCount)\r\n\(value)\r\n"
        )
    }

    private init(_ before: String, _ after: String) {
        bytes = Array(before.utf8) + Array(repeating: 48, count: Self.keyDigits) + Array(after.utf8)
        lastDigit = before.utf8.count + Self.keyDigits - 1
    }

    mutating func append(to queue: inout ByteQueue, key: Int) {
        var rest = key
        for index in 0..<Self.keyDigits {
            bytes[lastDigit - index] = UInt8(48 + rest % 10)
            rest /= 10
        }
        bytes.withUnsafeBytes { queue.append($0) }
    }
}
