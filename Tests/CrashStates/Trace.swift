import CCrashRecorder
import Glibc

/// What the daemon did to files and sockets, in order, over all of its starts.
struct Trace {
    /// One call that succeeded.
    struct Event {
        var kind: recorder_kind
        var record: recorder_record
        var path: String
        var other: String
        var data: [UInt8]
        /// How many events were over when it began.
        var begun: Int
    }

    /// A life of the daemon: from a start to its end.
    struct Life {
        var first: Int
        /// The bytes of each connection: after which event, and how many were sent with it.
        var sent: [[(begun: Int, end: Int)]] = []

        /// How many events were over when the daemon began to send a byte.
        func begun(ofByte end: Int, connection: Int) -> Int? {
            guard sent.indices.contains(connection) else { return nil }
            return sent[connection].first { $0.end >= end }?.begun
        }
    }

    private(set) var events: [Event] = []
    private(set) var lives: [Life] = []

    /// Adds what a recorder wrote down of one more life.
    mutating func append(log: String) throws(Failure) {
        var life = Life(first: events.count)
        var sockets: [Int32: Int] = [:]
        let bytes = try Files.contents(of: log)
        var place = 0
        while place < bytes.count {
            let event = Trace.event(in: bytes, at: &place, base: life.first)
            let descriptor = event.record.descriptor
            switch event.kind {
            case RECORDER_ACCEPT:
                sockets[event.record.result] = life.sent.count
                life.sent.append([])
            case RECORDER_SEND:
                guard let number = sockets[descriptor] else { break }
                let before = life.sent[number].last?.end ?? 0
                life.sent[number].append((event.begun, before + Int(event.record.length)))
            case RECORDER_CLOSE: sockets[descriptor] = nil
            default: break
            }
            events.append(event)
        }
        lives.append(life)
    }

    private static func event(in bytes: [UInt8], at place: inout Int, base: Int) -> Event {
        let record = bytes.withUnsafeBytes {
            $0.loadUnaligned(fromByteOffset: place, as: recorder_record.self)
        }
        place += MemoryLayout<recorder_record>.size
        func take(_ count: UInt32) -> ArraySlice<UInt8> {
            defer { place += Int(count) }
            return bytes[place..<place + Int(count)]
        }
        let path = String(decoding: take(record.path_count), as: UTF8.self)
        let other = String(decoding: take(record.other_count), as: UTF8.self)
        let kind = recorder_kind(rawValue: record.kind)
        let data = take(record.data_count)
        return Event(
            kind: kind,
            record: record,
            path: path,
            other: other,
            // What was sent is counted, not read.
            data: kind == RECORDER_SEND ? [] : Array(data),
            begun: base + Int(record.begun)
        )
    }
}

extension Trace.Event: CustomStringConvertible {
    private static let names = [
        "", "open", "close", "duplicate", "write", "send", "accept", "truncate", "allocate", "sync",
        "sync all", "rename", "unlink", "link", "make directory", "set attribute",
        "remove attribute", "mode", "map", "unknown",
    ]

    var description: String {
        let name = Trace.Event.names[Int(kind.rawValue)]
        let file = record.descriptor >= 0 ? "\(record.descriptor)" : "\(path) \(other)"
        return
            "\(name) \(file): \(record.length) bytes at \(record.offset), argument "
            + "\(record.argument), result \(record.result)"
    }
}
