package import StateModel

/// A durable stretch of a log, which one thread reads while another appends.
///
/// Its files stay readable, also if they are dropped meanwhile; but a file that is used again has other
/// frames, so its reader decides what is dropped.
package struct LogSnapshot: Sendable {
    struct Part: Sendable {
        let segment: LogScan.Segment
        let range: Range<Int>
    }

    package let start: LogPlace
    package let end: LogPlace
    let parts: [Part]

    package var byteCount: Int { parts.reduce(0) { $0 + $1.range.count } }

    /// Reads frames of commits, in order.
    ///
    /// - Parameters:
    ///   - goesOn: Asked before each frame.
    ///   - body: Takes the contents of a frame, which are borrowed, and its time.
    /// - Returns: The place behind the last frame.
    /// - Throws: ``StateError/Code/corrupt``, naming the place of a frame that is not whole, or
    ///   ``StateError/Code/storage``.
    package func read(
        while goesOn: () -> Bool = { true },
        _ body: (_ contents: Bytes, _ time: Int64) throws(LogDamage) -> Void
    ) throws(StateError) -> LogPlace {
        try forEachFrame(while: goesOn) { (frame, _) throws(LogDamage) in
            if frame.kind == .commits { try body(frame.contents, frame.time) }
        }
    }

    func forEachFrame(
        while goesOn: () -> Bool = { true },
        _ body: (_ frame: Frame.Found, _ place: LogPlace) throws(LogDamage) -> Void
    ) throws(StateError) -> LogPlace {
        var place = start
        for part in parts {
            place = LogPlace(segment: part.segment.header.number, offset: part.range.lowerBound)
            var window = LogWindow(part)
            while place.offset < part.range.upperBound {
                guard goesOn() else { return place }
                let count = try window.withFrame(at: place) { (frame) throws(LogDamage) in
                    try body(frame, place)
                }
                place.offset += count
            }
        }
        return max(place, end)
    }
}

/// The bytes of a segment around the frame that is read.
struct LogWindow {
    private let part: LogSnapshot.Part
    private let byteCount: Int
    private var bytes: [UInt8] = []
    private var start: Int

    /// Begins at the start of a part; reads so many bytes at once, or a frame if that is longer.
    init(_ part: LogSnapshot.Part, byteCount: Int = 256 << 10) {
        (self.part, self.byteCount, start) = (part, byteCount, part.range.lowerBound)
    }

    /// Calls `body` with a frame, whose bytes are borrowed.
    ///
    /// - Returns: Its length.
    mutating func withFrame(
        at place: LogPlace,
        _ body: (Frame.Found) throws(LogDamage) -> Void
    ) throws(StateError) -> Int {
        var needed = Frame.headByteCount
        while true {
            let left = start + bytes.count - place.offset
            if left < needed {
                try read(from: place.offset, byteCount: max(needed, byteCount))
            }
            let length = bytes.withBytes {
                Frame.length(Bytes(rebasing: $0[(place.offset - start)...]))
            }
            guard let length, length <= part.range.upperBound - place.offset else {
                throw damage(place, "is not whole")
            }
            if start + bytes.count - place.offset >= length { break }
            needed = length
        }
        do throws(LogDamage) {
            return try bytes.withBytes { (bytes) throws(LogDamage) in
                let frame = Frame.read(
                    Bytes(rebasing: bytes[(place.offset - start)...]),
                    at: place,
                    seed: part.segment.header.seed
                )
                guard let frame else { throw LogDamage("is not whole") }
                try body(frame)
                return frame.byteCount
            }
        } catch {
            throw damage(place, error.reason)
        }
    }

    private mutating func read(from offset: Int, byteCount: Int) throws(StateError) {
        let end = min(offset + byteCount, part.range.upperBound)
        bytes = try LogScan.contents(of: part.segment.file, offset..<end)
        start = offset
    }

    private func damage(_ place: LogPlace, _ reason: String) -> StateError {
        StateError(.corrupt, "the log is damaged at \(place): the frame \(reason)")
    }
}
