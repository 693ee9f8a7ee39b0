/// The names of systemd's units, and which unit the control group of a process belongs to.
package enum SystemUnit {
    /// The kinds of units that have processes.
    private static let endings = [".service", ".scope", ".socket", ".mount", ".swap"]

    /// Whether `name` is the whole name of a unit that has processes, such as `app.service`.
    package static func isName(_ name: String) -> Bool {
        guard let ending = endings.first(where: { name.hasSuffix($0) }) else { return false }
        let stem = name.utf8.dropLast(ending.utf8.count)
        return !stem.isEmpty && name.utf8.count <= 255 && stem.allSatisfy(isOfName)
    }

    /// A letter or digit of ASCII, or one of `:-_.\@`: `unit_name_is_valid` of systemd.
    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: ":-_.\\@".utf8.contains(byte)
        }
    }

    /// The unit of a process by its `/proc/PID/cgroup`; nil if it is in none.
    ///
    /// It is the first part of the path that is no slice. What a unit made below itself does not
    /// count: there a user's own manager names control groups as the user likes.
    package static func name(inControlGroups text: String) -> String? {
        let lines = text.split(separator: "\n")
        // Only the hierarchies that systemd manages; the second is that of cgroup version 1.
        for hierarchy in ["0::/", ":name=systemd:/"] {
            for line in lines {
                guard let place = end(of: hierarchy, in: line), place < line.endIndex else {
                    continue
                }
                return unit(inPath: line[place...])
            }
        }
        return nil
    }

    /// Where the path begins in a line of a hierarchy, after its first slash.
    private static func end(of hierarchy: String, in line: Substring) -> Substring.Index? {
        if line.hasPrefix(hierarchy) {
            return line.index(line.startIndex, offsetBy: hierarchy.count)
        }
        guard hierarchy.hasPrefix(":"), let colon = line.firstIndex(of: ":") else { return nil }
        guard line[colon...].hasPrefix(hierarchy) else { return nil }
        return line.index(colon, offsetBy: hierarchy.count)
    }

    private static func unit(inPath path: Substring) -> String? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        // Above the root of this control group namespace: not of this machine's manager.
        guard !parts.contains(".."), let part = parts.first(where: { !$0.hasSuffix(".slice") })
        else { return nil }
        // systemd escapes a name that the kernel keeps for itself with an underscore.
        let name = String(part.hasPrefix("_") ? part.dropFirst() : part)
        return isName(name) ? name : nil
    }
}
