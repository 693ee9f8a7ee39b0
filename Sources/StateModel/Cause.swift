import CLinux
import StatePlatform

/// Who made a commit.
///
/// `uid` and `gid` come from the kernel (SO_PEERCRED) and can be trusted; `pid`, `command` and
/// `client` are hints that are shown and never used for access.
public struct Cause: Hashable, Sendable {
    /// The effective user of the writer when it connected.
    public var uid: UInt32
    /// Its effective group.
    public var gid: UInt32
    /// Its process.
    public var pid: Int32
    /// Its command name, at most 15 bytes, as the kernel keeps it.
    public var command: String
    /// The name that it gave itself; empty if none.
    public var client: String
    /// Why it wrote, in its own words, such as a store's message; known only in its own process,
    /// empty elsewhere.
    public var reason = ""

    /// An unknown writer.
    public static let unknown = Cause(uid: .max, gid: .max, pid: 0, command: "")

    /// This process as a writer.
    package static let thisProcess = Cause(
        uid: geteuid(),
        gid: getegid(),
        pid: getpid(),
        command: String(cString: clinux_program_name())
    )

    /// Makes a cause.
    public init(uid: UInt32, gid: UInt32, pid: Int32, command: String, client: String = "") {
        self.uid = uid
        self.gid = gid
        self.pid = pid
        self.command = command
        self.client = client
    }
}

extension Cause: CustomStringConvertible {
    /// `uid:gid:pid:command:client`, as in the history; `%` and `:` of the command are written as
    /// `%25` and `%3A`.
    public var description: String {
        let isPlain = !command.utf8.contains { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: ":") }
        if isPlain { return "\(uid):\(gid):\(pid):\(command):\(client)" }
        var escaped = ""
        for character in command.unicodeScalars {
            switch character {
            case "%": escaped += "%25"
            case ":": escaped += "%3A"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return "\(uid):\(gid):\(pid):\(escaped):\(client)"
    }

    /// Reads what ``description`` writes; nil for anything else.
    public init?(_ text: String) {
        // By bytes: as a `Character`, `:` may combine with an accent at the start of a client's
        // name.
        let parts = text.utf8.split(
            separator: UInt8(ascii: ":"),
            maxSplits: 4,
            omittingEmptySubsequences: false
        )
        .map { String(decoding: $0, as: UTF8.self) }
        guard parts.count == 5, let uid = UInt32(parts[0]), let gid = UInt32(parts[1]),
            let pid = Int32(parts[2])
        else { return nil }
        let command = Cause.unescaped(parts[3])
        self.init(uid: uid, gid: gid, pid: pid, command: command, client: parts[4])
        guard description.utf8.elementsEqual(text.utf8) else { return nil }
    }

    /// The text in which `%25` and `%3A` stand for `%` and `:`.
    private static func unescaped(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return text }
        var rest = Substring(text).utf8
        var bytes: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.starts(with: "25".utf8) {
                bytes.append(byte)
                rest.removeFirst(2)
            } else if byte == UInt8(ascii: "%"), rest.starts(with: "3A".utf8) {
                bytes.append(UInt8(ascii: ":"))
                rest.removeFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
