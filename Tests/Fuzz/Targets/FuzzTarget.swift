package import StateEngine

/// What is fuzzed: each reads bytes of others, and ends the process if something is wrong.
package enum FuzzTarget: String, CaseIterable {
    case frames
    case server
    case configuration
    case patterns
    case store
    case files
    case log

    /// Reads an input.
    ///
    /// Ends the process if it finds something wrong; an error of the machine ends it, too.
    package func run(_ input: Bytes) {
        do {
            switch self {
            case .frames: try FrameTarget.run(input)
            case .server: try ServerTarget.run(input)
            case .configuration: try ConfigurationTarget.run(input)
            case .patterns: try PatternTarget.run(input)
            case .store: try StoreTarget.run(input)
            case .files: try FilesTarget.run(input)
            case .log: try LogTarget.run(input)
            }
        } catch {
            fatalError("\(error)")
        }
    }
}

/// Ends the process where `condition` does not hold; `precondition` of an optimised build would not say why.
func require(_ condition: Bool, _ message: @autoclosure () -> String) {
    guard !condition else { return }
    fatalError(message())
}

/// Hands `stream` out in pieces, whose lengths depend on `seed`: many of few bytes, some of many.
func cut(_ stream: Bytes, seed: UInt8, _ body: (Bytes) throws -> Void) rethrows {
    var state = UInt32(seed) &* 2_654_435_761 | 1
    var start = 0
    while start < stream.count {
        state = state &* 1_664_525 &+ 1_013_904_223
        let length = 1 + Int(state >> 16) % (state >> 30 == 0 ? 200 : 7)
        let end = min(stream.count, start + length)
        try body(stream.slice(start, end))
        start = end
    }
}
