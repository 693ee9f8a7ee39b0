/// What a keyspace asks before it takes a change, however it came.
///
/// Every call comes under the keyspace's lock.
package protocol WriteRules: Sendable {
    /// Whether `key` may be set to `value`, followed by `suffix` where there is one.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - value: The bytes.
    ///   - suffix: More of them.
    ///   - isPresent: Whether the key has a value.
    /// - Throws: ``StateError/Code/rejected`` or ``StateError/Code/tooBig``, naming the key, the rule and the value.
    func checkSet(
        _ key: Bytes,
        to value: Bytes,
        appending suffix: Bytes?,
        isPresent: Bool
    ) throws(StateError)

    /// Whether `key`, which has a value, may be deleted.
    ///
    /// - Throws: ``StateError/Code/rejected``, naming the key and the rule.
    func checkDelete(_ key: Bytes) throws(StateError)
}
