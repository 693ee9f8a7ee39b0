public import StateModel
import StateWire

extension Client {
    /// How long a value lives.
    public enum Lifetime: Hashable, Sendable {
        /// So much longer.
        case limited(Duration)
        /// It does not expire.
        case unlimited
    }

    /// How long the value of a key will live; nil if the key is absent.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func lifetime(of key: Key) throws(StateError) -> Lifetime? {
        switch try number("PTTL", [key.bytes]) {
        case -2: nil
        case -1: .unlimited
        case let left: .limited(.milliseconds(left))
        }
    }

    /// Makes the value of a key expire; the value stays the same.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - lifetime: How much longer it lives; 0 deletes it now.
    /// - Returns: False if the key is absent: nothing has changed.
    /// - Throws: As ``set(_:for:if:durability:expiresAfter:livingAs:)``.
    @discardableResult
    public func expire(_ key: Key, after lifetime: Duration) throws(StateError) -> Bool {
        try number("PEXPIRE", [key.bytes, Array(Self.milliseconds(lifetime).utf8)], .write) == 1
    }

    /// Makes the value of a key live without end.
    ///
    /// - Returns: False if it is absent or does not expire: nothing has changed.
    /// - Throws: As ``set(_:for:if:durability:expiresAfter:livingAs:)``.
    @discardableResult
    public func persist(_ key: Key) throws(StateError) -> Bool {
        try number("PERSIST", [key.bytes], .write) == 1
    }

    /// A time in milliseconds, rounded up: a short time is not none.
    static func milliseconds(_ time: Duration) -> String {
        let (seconds, attoseconds) = time.components
        let rest = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000)
        return String(overflows ? .max : product + rest)
    }

    private func number(
        _ verb: String,
        _ operands: [[UInt8]],
        _ kind: RequestKind = []
    ) throws(StateError) -> Int64 {
        let reply = try call([Array(verb.utf8)] + operands, kind)
        guard let number = reply.integerValue else { throw Self.unexpected(verb) }
        return number
    }
}
