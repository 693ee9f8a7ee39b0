import Glibc

extension Statectl {
    /// `check`: becomes `stated --check`, which has what it takes to read a store; this program is small for it has not.
    static func check(_ invocation: Invocation) throws(Failure) {
        var arguments = ["stated", "--check"].map { Array($0.utf8) }
        if let directory = invocation.value("--data") {
            arguments += [Array("--data".utf8), directory]
        }
        let argv = arguments.map { strdup($0.map { CChar(bitPattern: $0) } + [0]) } + [nil]
        if let beside = programBeside() { execv(beside, argv) }
        execvp("stated", argv)
        throw .file("cannot run stated: \(String(cString: strerror(errno)))")
    }

    /// The path of the `stated` that lies where this program does; nil where none does.
    private static func programBeside() -> String? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count)
        let bytes = path.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        let beside = String(decoding: bytes[...slash], as: UTF8.self) + "stated"
        return access(beside, X_OK) == 0 ? beside : nil
    }
}
