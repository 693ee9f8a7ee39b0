/// Who made a commit.
///
/// `uid` and `gid` come from the kernel (SO_PEERCRED) and may be trusted; `pid`, `command` and `client` are hints that
/// are shown and never used for access.
public struct Cause: Hashable, Sendable {
    /// The effective user of the writer when it connected.
    public var uid: UInt32
    /// Its effective group.
    public var gid: UInt32
    /// Its process.
    public var pid: Int32
    /// Its command name, 15 bytes at most, as the kernel keeps it.
    public var command: String
    /// The name that it gave itself; empty where it gave none.
    public var client: String

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
    /// `uid:gid:pid:command:client`, as it stands in the history; `%` and `:` of the command are written `%25` and `%3A`.
    public var description: String {
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
        let parts = text.split(separator: ":", maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count == 5, let uid = UInt32(parts[0]), let gid = UInt32(parts[1]),
            let pid = Int32(parts[2])
        else { return nil }
        let command = parts[3].split(separator: "%3A", omittingEmptySubsequences: false)
            .map {
                $0.split(separator: "%25", omittingEmptySubsequences: false).joined(separator: "%")
            }
            .joined(separator: ":")
        self.init(uid: uid, gid: gid, pid: pid, command: command, client: String(parts[4]))
    }
}
