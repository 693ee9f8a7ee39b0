import StateModel

/// The arguments of a command from an index on, from which options are taken one by one.
struct OptionCursor {
    private let arguments: Arguments
    /// The index of the next argument.
    private(set) var index: Int

    init(_ arguments: Arguments, from index: Int = 0) {
        self.arguments = arguments
        self.index = index
    }

    var isAtEnd: Bool { index >= arguments.count }

    /// The next argument; there must be one.
    var next: Bytes { arguments[index] }

    /// The arguments that were not taken.
    var rest: Arguments { arguments.dropFirst(index) }

    /// Takes the next argument; there must be one.
    mutating func takeNext() -> Bytes {
        index += 1
        return arguments[index - 1]
    }

    /// Takes the next argument if it is this word, in any case.
    mutating func take(_ word: StaticString) -> Bool {
        guard index < arguments.count, arguments.isWord(index, word) else { return false }
        index += 1
        return true
    }

    /// Takes the next arguments if they are this word and a value.
    ///
    /// - Returns: The value; nil if they are not.
    mutating func value(of word: StaticString) -> Bytes? {
        guard index + 1 < arguments.count, arguments.isWord(index, word) else { return nil }
        index += 2
        return arguments[index - 1]
    }

    /// Takes the next arguments if they are this word and two values.
    mutating func values(of word: StaticString) -> (Bytes, Bytes)? {
        guard index + 2 < arguments.count, arguments.isWord(index, word) else { return nil }
        index += 3
        return (arguments[index - 2], arguments[index - 1])
    }
}
