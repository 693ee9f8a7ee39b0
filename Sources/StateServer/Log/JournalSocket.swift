import CLinux
import Glibc
import StateEngine
import StateWire

/// Sends messages to the journal in its own protocol: one datagram each, in memory if it is large.
///
/// https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
package struct JournalSocket: Sendable {
    /// Where journald listens.
    package static let standardPath = "/run/systemd/journal/socket"

    private let address: sockaddr_un
    private let descriptor: Int32

    /// Nil if there is no descriptor for it.
    ///
    /// It stays open as long as the process runs.
    package init?(path: String = JournalSocket.standardPath) {
        guard let address = try? sockaddr_un(servedAt: path) else { return nil }
        self.address = address
        let flags = O_CLOEXEC  // The value of SOCK_CLOEXEC on Linux.
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | flags, 0)
        guard descriptor >= 0 else { return nil }
    }

    /// Sends an entry, and waits while the journal has no room.
    ///
    /// - Returns: Whether the journal has it; false if nobody listens there.
    package func send(_ entry: [UInt8]) -> Bool {
        while true {
            let count = address.withAddress {
                sendto(descriptor, entry, entry.count, Int32(MSG_NOSIGNAL), $0, $1)
            }
            if count >= 0 { return true }
            switch errno {
            case EINTR: continue
            case EMSGSIZE, ENOBUFS: return sendInMemory(entry)
            default: return false
            }
        }
    }

    /// A datagram without bytes and with the descriptor of a sealed file.
    private func sendInMemory(_ entry: [UInt8]) -> Bool {
        let file = clinux_make_memory("stated-log", entry, entry.count)
        guard file >= 0 else { return false }
        defer { close(file) }
        return address.withAddress {
            clinux_send_descriptors(descriptor, $0, $1, "", 0, [file], 1)
        } >= 0
    }
}

extension LogMessage {
    /// The message as an entry of the journal.
    ///
    /// - Parameter shown: The text for readers: the message with its details.
    /// - Returns: The bytes of its datagram.
    package func journalEntry(_ shown: String) -> [UInt8] {
        var entry: [UInt8] = []
        entry.reserveCapacity(256 + byteCount)
        func append(_ name: String, _ value: some Collection<UInt8>) {
            entry += name.utf8
            if value.contains(UInt8(ascii: "\n")) {
                // A value with line feeds comes after its length, 64 bits with the lowest first.
                entry.append(UInt8(ascii: "\n"))
                withUnsafeBytes(of: UInt64(value.count).littleEndian) { entry += $0 }
            } else {
                entry.append(UInt8(ascii: "="))
            }
            entry += value
            entry.append(UInt8(ascii: "\n"))
        }
        append("MESSAGE", shown.utf8)
        append("PRIORITY", String(level.rawValue).utf8)
        append("MESSAGE_ID", event.rawValue.utf8)
        append("SYSLOG_IDENTIFIER", "stated".utf8)
        for field in fields { append(field.name, field.value) }
        return entry
    }
}
