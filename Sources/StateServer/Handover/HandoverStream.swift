import CLinux
import Glibc
import StateEngine

/// Connections on their way from one process of the daemon to the next: a pair of sockets whose
/// messages hold them, so that the service manager keeps two descriptors, however many clients there
/// are.
///
/// ```
/// first message    "record", with a constant file in memory: the ``HandoverRecord``
/// other messages   at most 253 numbers of sessions, 4 bytes each, with their sockets in this order
/// ```
///
/// Rejected: each connection in the manager's store. systemd compares each new descriptor with all
/// that it has: seconds for 10,000. And a message to it for each name would be needed.
package enum HandoverStream {
    private static let recordMark = Array("record".utf8)
    private static let batchCount = Int(CLINUX_DESCRIPTORS)

    /// What was put into a stream.
    package struct Packed {
        /// Both ends: the second has the messages, the first keeps it from hanging up.
        package var ends: [Int32]
        /// The sessions whose sockets are in it.
        var sessions: Set<Int> = []
    }

    // MARK: Packing

    /// Puts a record and the sockets of its sessions into a new stream.
    ///
    /// A socket that the kernel does not pass on is left out: a client can make its own so, by
    /// passing sockets through sockets to it.
    ///
    /// - Returns: Nil if there are no descriptors or no memory for it.
    static func pack(_ record: [UInt8], _ sockets: [Int32]) -> Packed? {
        var ends: [Int32] = [-1, -1]
        // SOCK_NONBLOCK and SOCK_CLOEXEC have these values on Linux.
        let type = Int32(SOCK_SEQPACKET.rawValue) | O_NONBLOCK | O_CLOEXEC
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        var packed = Packed(ends: ends)
        let memory = clinux_make_memory("stated-handover", record, record.count)
        defer { if memory >= 0 { close(memory) } }
        guard memory >= 0, send(recordMark, [memory], to: ends[0]) else {
            packed.close()
            return nil
        }
        for start in stride(from: 0, to: sockets.count, by: batchCount) {
            let batch = start..<min(start + batchCount, sockets.count)
            putEach(of: batch, sockets, into: &packed)
        }
        return packed
    }

    /// Puts as many of a batch as possible, in few messages: a stream has room for about 270.
    private static func putEach(
        of batch: Range<Int>,
        _ sockets: [Int32],
        into packed: inout Packed
    ) {
        if put(batch, sockets, into: packed.ends[0]) {
            packed.sessions.formUnion(batch)
        } else if batch.count > 1 {
            let middle = batch.lowerBound + batch.count / 2
            putEach(of: batch.lowerBound..<middle, sockets, into: &packed)
            putEach(of: middle..<batch.upperBound, sockets, into: &packed)
        }
    }

    private static func put(_ batch: Range<Int>, _ sockets: [Int32], into end: Int32) -> Bool {
        var numbers: [UInt8] = []
        for number in batch {
            withUnsafeBytes(of: UInt32(number).littleEndian) { numbers.append(contentsOf: $0) }
        }
        return send(numbers, batch.map { sockets[$0] }, to: end)
    }

    private static func send(_ bytes: [UInt8], _ descriptors: [Int32], to end: Int32) -> Bool {
        let count = Int32(descriptors.count)
        return clinux_send_descriptors(end, nil, 0, bytes, bytes.count, descriptors, count)
            == bytes.count
    }

    // MARK: Unpacking

    /// What a stream had.
    struct Unpacked {
        /// Nil if there was none, or it is not constant.
        var record: [UInt8]?
        /// The sockets by the numbers of their sessions.
        var sockets: [Int: Int32] = [:]
        /// Descriptors that belong to no session.
        var others: [Int32] = []
    }

    /// Takes everything out of streams, and closes them.
    static func unpack(_ ends: [Int32]) -> Unpacked {
        var unpacked = Unpacked()
        for end in ends {
            while let message = receive(from: end) {
                unpacked.take(message.bytes, message.descriptors)
            }
        }
        for end in ends { close(end) }
        return unpacked
    }

    private static func receive(from end: Int32) -> (bytes: [UInt8], descriptors: [Int32])? {
        // It may be any descriptor that somebody has put under the name.
        guard fcntl(end, F_SETFL, O_NONBLOCK) == 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 4 * batchCount)
        var descriptors = [Int32](repeating: -1, count: batchCount)
        var count: Int32 = 0
        let received = clinux_receive_descriptors(end, &bytes, bytes.count, &descriptors, &count)
        guard received > 0 else { return nil }
        return (Array(bytes[..<received]), Array(descriptors[..<Int(count)]))
    }

    fileprivate static func isRecord(_ bytes: [UInt8]) -> Bool { bytes == recordMark }
}

extension HandoverStream.Packed {
    /// Closes both ends, here: what is in them lives as long as another process has them.
    func close() { for end in ends { Glibc.close(end) } }
}

extension HandoverStream.Unpacked {
    fileprivate mutating func take(_ bytes: [UInt8], _ descriptors: [Int32]) {
        if record == nil, HandoverStream.isRecord(bytes), descriptors.count == 1 {
            record = contents(of: descriptors[0])
            close(descriptors[0])
            return
        }
        for (index, descriptor) in descriptors.enumerated() {
            let start = 4 * index
            guard start + 4 <= bytes.count else {
                others.append(descriptor)
                continue
            }
            let number = bytes.withUnsafeBytes {
                Int(UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: start, as: UInt32.self)))
            }
            if let former = sockets.updateValue(descriptor, forKey: number) {
                others.append(former)
            }
        }
    }

    private func contents(of memory: Int32) -> [UInt8]? {
        var status = stat()
        guard clinux_is_constant_memory(memory) != 0, fstat(memory, &status) == 0,
            status.st_size > 0, status.st_size <= 2 * HandoverRecord.byteLimit
        else { return nil }
        let size = Int(status.st_size)
        var position = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { room, count in
            while position < size, let start = room.baseAddress {
                let more = pread(memory, start + position, size - position, off_t(position))
                guard more > 0 else { break }
                position += more
            }
            count = position
        }
        return position == size ? bytes : nil
    }
}
