package import StateModel

/// One reply of a server, or one push, in RESP2 or RESP3.
///
/// Sets become arrays, big numbers and verbatim strings become bulks, attributes are dropped.
package enum Reply: Hashable, Sendable {
    /// RESP3's null, and RESP2's null bulk and null array.
    case null
    /// A 64-bit number.
    case integer(Int64)
    /// A floating-point number.
    case double(Double)
    /// A truth value.
    case boolean(Bool)
    /// A status such as `OK`.
    case simple(String)
    /// Bytes.
    case bulk([UInt8])
    /// A refusal.
    case error(StateError)
    /// Elements in order.
    case array([Reply])
    /// Pairs in the order in which they were sent.
    case map([Pair])
    /// A message that is not a reply; its first element names its kind.
    case push([Reply])

    /// One pair of a map.
    package struct Pair: Hashable, Sendable {
        /// The name; in replies of `stated` a bulk string.
        package var key: Reply
        /// The value.
        package var value: Reply

        /// Creates a pair.
        package init(key: Reply, value: Reply) {
            self.key = key
            self.value = value
        }
    }
}

extension Reply {
    /// The number, if this is one.
    package var integerValue: Int64? {
        if case .integer(let number) = self { number } else { nil }
    }

    /// The bytes of a bulk or a status.
    package var byteValue: [UInt8]? {
        switch self {
        case .bulk(let bytes): bytes
        case .simple(let text): Array(text.utf8)
        default: nil
        }
    }

    /// The text of a bulk or a status; U+FFFD replaces bytes that are not UTF-8.
    package var textValue: String? {
        switch self {
        case .bulk(let bytes): String(decoding: bytes, as: UTF8.self)
        case .simple(let text): text
        default: nil
        }
    }

    /// The elements of an array or a push.
    package var elements: [Reply]? {
        switch self {
        case .array(let elements), .push(let elements): elements
        default: nil
        }
    }

    /// The pairs of a map, also if RESP2 sent them as a flat array.
    package var pairs: [Pair]? {
        switch self {
        case .map(let pairs):
            return pairs
        case .array(let elements) where elements.count.isMultiple(of: 2):
            return stride(from: 0, to: elements.count, by: 2)
                .map { Pair(key: elements[$0], value: elements[$0 + 1]) }
        default:
            return nil
        }
    }

    /// The value of a map's field; nil if there is none.
    ///
    /// - Complexity: O(*n*) in the number of pairs.
    package subscript(field: String) -> Reply? {
        pairs?.first { $0.key.textValue == field }?.value
    }
}
