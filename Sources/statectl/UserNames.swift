/// The names of users in /etc/passwd; a user that is not there is shown by number.
///
/// It reads the file instead of calling getpwuid(3), which loads shared libraries: a static
/// program cannot rely on them.
struct UserNames {
    private var names: [UInt32: String]?

    /// The name of a user.
    mutating func name(of uid: UInt32) -> String {
        let names = names ?? UserNames.read()
        self.names = names
        return names[uid] ?? String(uid)
    }

    private static func read() -> [UInt32: String] {
        var names: [UInt32: String] = [:]
        guard var input = try? Input(path: Array("/etc/passwd".utf8)) else { return [:] }
        while let line = try? input.nextLine() {
            let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
            guard fields.count > 2, let uid = UInt32(String(decoding: fields[2], as: UTF8.self)),
                names[uid] == nil
            else { continue }
            names[uid] = String(decoding: fields[0], as: UTF8.self)
        }
        return names
    }
}
