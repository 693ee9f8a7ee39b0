import StateModel

/// The arguments of a command from some place on, of which options are taken one by one.
struct OptionCursor {
    private let arguments: Arguments
    /// The place of the next argument.
    private(set) var index: Int

    init(_ arguments: Arguments, from index: Int = 0) {
        self.arguments = arguments
        self.index = index
    }

    var isAtEnd: Bool { index >= arguments.count }

    /// The next argument, which must be there.
    var next: Bytes { arguments[index] }

    /// What was not taken.
    var rest: Arguments { arguments.dropFirst(index) }

    /// Takes the next argument, which must be there.
    mutating func takeNext() -> Bytes {
        index += 1
        return arguments[index - 1]
    }

    /// Takes the next argument if it is this word, in whatever case.
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
