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
        try withFrameIfWhole(at: place) { (frame) throws(StateError) in
            do throws(LogDamage) {
                guard let frame else { throw LogDamage("is not whole") }
                try body(frame)
                return frame.byteCount
            } catch {
                throw StateError(
                    .corrupt,
                    "the log is damaged at \(place): the frame \(error.reason)"
                )
            }
        }
    }

    /// Calls `body` with the frame at a place, whose bytes are borrowed, or with nil if there is none.
    mutating func withFrameIfWhole<Result>(
        at place: LogPlace,
        _ body: (Frame.Found?) throws(StateError) -> Result
    ) throws(StateError) -> Result {
        try read(at: place.offset, atLeast: Frame.headByteCount)
        let length = withBytes(from: place.offset) {
            Frame.lengthInHead($0, at: place, seed: part.segment.header.seed)
        }
        guard let length, length <= part.range.upperBound - place.offset else {
            return try body(nil)
        }
        try read(at: place.offset, atLeast: length)
        return try withBytes(from: place.offset) { (bytes) throws(StateError) in
            try body(Frame.read(bytes, at: place, seed: part.segment.header.seed))
        }
    }

    /// The next place at which a frame may begin; nil if there is none.
    mutating func nextStart(from offset: Int) throws(StateError) -> Int? {
        var offset = offset
        while part.range.upperBound - offset >= Frame.alignment {
            try read(at: offset, atLeast: Frame.alignment)
            // A daemon that goes on may have made the file shorter.
            guard start + bytes.count - offset >= Frame.alignment else { return nil }
            let next = withBytes(from: offset) { Frame.nextStart(in: $0, from: 0) }
            offset += next
            if start + bytes.count - offset >= Frame.alignment { return offset }
        }
        return nil
    }

    /// The bytes of a range.
    mutating func contents(of range: Range<Int>) throws(StateError) -> [UInt8] {
        try read(at: range.lowerBound, atLeast: range.count)
        return withBytes(from: range.lowerBound) { Array($0.prefix(range.count)) }
    }

    private func withBytes<Result, Failure: Error>(
        from offset: Int,
        _ body: (Bytes) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try bytes.withBytes { (bytes) throws(Failure) in
            try body(Bytes(rebasing: bytes[min(offset - start, bytes.count)...]))
        }
    }

    /// Has at least so many bytes from `offset` on, or as many as there are.
    private mutating func read(at offset: Int, atLeast needed: Int) throws(StateError) {
        guard offset < start || start + bytes.count < min(offset + needed, part.range.upperBound)
        else { return }
        let end = min(offset + max(needed, byteCount), part.range.upperBound)
        try LogScan.read(part.segment.file, offset..<max(offset, end), into: &bytes)
        start = offset
    }
}
