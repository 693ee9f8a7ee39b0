import StateEngine

/// Writes the fields of a record, one after the other.
///
/// ```
/// number   8 bytes, the lowest first; a flag is the number 0 or 1
/// text     its length, and its bytes
/// list     its length, and its elements
/// ```
struct RecordWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ number: Int64) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func write(_ flag: Bool) { write(flag ? 1 : 0) }

    mutating func write(text: [UInt8]) {
        write(Int64(text.count))
        write(bytes: text)
    }

    /// Bytes whose length was written before.
    mutating func write(bytes more: [UInt8]) { bytes.append(contentsOf: more) }

    mutating func write<Element>(
        list: some Collection<Element>,
        _ body: (inout RecordWriter, Element) -> Void
    ) {
        write(Int64(list.count))
        for element in list { body(&self, element) }
    }

    /// A value that may be absent: a list of one or none.
    mutating func write<Value>(
        optional value: Value?,
        _ body: (inout RecordWriter, Value) -> Void
    ) {
        write(list: value.map { [$0] } ?? [], body)
    }
}

/// The bytes are not those of a record.
struct DamagedRecord: Error {}

/// Reads what ``RecordWriter`` has written; never beyond its end, and it takes no memory for more
/// elements than there are bytes.
struct RecordReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }
    /// The bytes that were read.
    var passed: ArraySlice<UInt8> { bytes[..<position] }

    mutating func number() throws(DamagedRecord) -> Int64 {
        guard bytes.count - position >= 8 else { throw DamagedRecord() }
        defer { position += 8 }
        return bytes.withUnsafeBytes {
            Int64(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: Int64.self))
        }
    }

    /// A number within bounds.
    mutating func number(in range: ClosedRange<Int64>) throws(DamagedRecord) -> Int {
        let number = try number()
        guard range.contains(number) else { throw DamagedRecord() }
        return Int(number)
    }

    mutating func flag() throws(DamagedRecord) -> Bool { try number(in: 0...1) == 1 }

    mutating func text() throws(DamagedRecord) -> [UInt8] {
        try bytes(try number())
    }

    /// So many bytes.
    mutating func bytes(_ count: Int64) throws(DamagedRecord) -> [UInt8] {
        guard count >= 0, count <= bytes.count - position else { throw DamagedRecord() }
        defer { position += Int(count) }
        return Array(bytes[position..<position + Int(count)])
    }

    mutating func list<Element>(
        _ body: (inout RecordReader) throws(DamagedRecord) -> Element
    ) throws(DamagedRecord) -> [Element] {
        let count = try number(in: 0...Int64(bytes.count - position) / 8)
        var elements: [Element] = []
        for _ in 0..<count { elements.append(try body(&self)) }
        return elements
    }

    mutating func optional<Value>(
        _ body: (inout RecordReader) throws(DamagedRecord) -> Value
    ) throws(DamagedRecord) -> Value? {
        let values = try list(body)
        guard values.count <= 1 else { throw DamagedRecord() }
        return values.first
    }
}
