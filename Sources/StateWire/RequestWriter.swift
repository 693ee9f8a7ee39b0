package import StateModel

/// Encoded requests: arrays of bulk strings, one after the other.
package struct RequestWriter: Sendable {
    /// The bytes to send.
    package private(set) var bytes: [UInt8] = []

    /// Creates a writer without a request.
    package init() {}

    /// Removes the requests and keeps the memory.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
    }

    /// Adds a request with these arguments; the first is the name of the command.
    package mutating func append(_ arguments: [[UInt8]]) {
        begin(argumentCount: arguments.count)
        for argument in arguments { append(argument: argument) }
    }

    /// Adds a request of words.
    package mutating func append(words: String...) {
        begin(argumentCount: words.count)
        for word in words { append(argument: word) }
    }

    /// Begins a request; `argumentCount` calls of `append(argument:)` must follow.
    package mutating func begin(argumentCount: Int) {
        appendHeader(UInt8(ascii: "*"), argumentCount)
    }

    /// Adds an argument of bytes.
    package mutating func append(argument: [UInt8]) { append(bytes: argument) }

    /// Adds an argument of borrowed bytes.
    package mutating func append(argument: Bytes) { append(bytes: argument) }

    /// Adds a word.
    package mutating func append(argument: String) { append(bytes: argument.utf8) }

    private mutating func append(bytes argument: some Collection<UInt8>) {
        appendHeader(UInt8(ascii: "$"), argument.count)
        bytes += argument
        appendLineEnd()
    }

    private mutating func appendHeader(_ kind: UInt8, _ count: Int) {
        bytes.append(kind)
        var digits: InlineArray<20, UInt8> = .init(repeating: 0)
        var first = 20
        var rest = count
        repeat {
            first -= 1
            digits[first] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        } while rest > 0
        for index in first..<20 { bytes.append(digits[index]) }
        appendLineEnd()
    }

    private mutating func appendLineEnd() {
        bytes.append(UInt8(ascii: "\r"))
        bytes.append(UInt8(ascii: "\n"))
    }
}
