/// Copies of arguments at fixed addresses until the store goes, so that a command parsed from them
/// can wait.
package final class ArgumentStore {
    private static let chunkByteCount = 64 << 10

    private var chunks: [UnsafeMutableRawBufferPointer] = []
    /// The unused rest of the last chunk.
    private var place: UnsafeMutableRawPointer?
    private var left = 0
    /// Its approximate memory, in bytes.
    package private(set) var footprint = 0

    package init() {}

    deinit { for chunk in chunks { chunk.deallocate() } }

    /// Copies arguments with their bytes.
    ///
    /// - Complexity: O(*n*) in their bytes.
    package func copy(_ arguments: Arguments) -> Arguments {
        let spansByteCount = arguments.count * MemoryLayout<Arguments.Span>.stride
        let memory = take(spansByteCount + arguments.byteCount)
        let spans = memory.bindMemory(to: Arguments.Span.self, capacity: arguments.count)
        var end = memory + spansByteCount
        for index in 0..<arguments.count {
            let argument = arguments[index]
            (spans + index).initialize(
                to: Arguments.Span(offset: end - memory, count: argument.count)
            )
            if let start = argument.baseAddress {
                end.copyMemory(from: start, byteCount: argument.count)
            }
            end += argument.count
        }
        return Arguments(base: memory, spans: spans, count: arguments.count)
    }

    /// Room for so many bytes, aligned for spans.
    private func take(_ byteCount: Int) -> UnsafeMutableRawPointer {
        let alignment = MemoryLayout<Arguments.Span>.alignment
        let rounded = (byteCount + alignment - 1) / alignment * alignment
        if rounded > left { addChunk(of: rounded, alignment) }
        guard let start = place else { preconditionFailure("a chunk was added") }
        place = start + rounded
        left -= rounded
        return start
    }

    /// The first chunk has just the needed size, for example for a transaction of two commands;
    /// later chunks are larger.
    private func addChunk(of byteCount: Int, _ alignment: Int) {
        let usual = min(ArgumentStore.chunkByteCount, max(256, 2 * footprint))
        let chunk = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(byteCount, usual),
            alignment: alignment
        )
        chunks.append(chunk)
        (place, left) = (chunk.baseAddress, chunk.count)
        footprint += chunk.count
    }
}
