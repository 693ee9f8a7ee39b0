import Glibc
import StateClient
import StateModel
import StateSystem

extension Statectl {
    /// `check [PATTERN]`: the stored values that the daemon's rules refuse; or the problems of a
    /// store on disk.
    static func check(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        guard !invocation.has("--store"), !invocation.has("--data") else {
            guard invocation.operands.isEmpty, !invocation.isJSON else {
                throw .usage("check: --store and --data take no PATTERN and no --json")
            }
            guard !["--socket", "--system", "--user"].contains(where: invocation.has) else {
                throw .usage("check: --store looks at files, not at a daemon: use --data DIRECTORY")
            }
            return try checkStore(invocation)
        }
        let pattern = try invocation.pattern()
        let client = try invocation.connect()
        var (checkedCount, refusedCount) = (Int64(0), 0)
        var next: [UInt8]?
        repeat {
            let page = try attempt(try client.refusals(of: pattern, after: next))
            write(page, isJSON: invocation.isJSON, &output)
            try output.flushIfLarge()
            checkedCount += page.checkedCount
            refusedCount += page.values.count + page.files.count
            next = page.next
        } while next != nil
        if !invocation.isJSON {
            let verdict = refusedCount == 0 ? "nothing is refused" : "\(refusedCount) refused"
            output.write("\(checkedCount) checked: \(verdict)\n")
        }
        if refusedCount > 0 { throw .found }
    }

    private static func write(_ page: Client.Refusals, isJSON: Bool, _ output: inout Output) {
        for value in page.values {
            guard isJSON else {
                output.writeFields(["\(value.revision)".bytes, value.key], message: value.issue)
                continue
            }
            output.write(json: [
                "revision": .number(value.revision), "key": .bytes(value.key),
                "issue": .text(value.issue),
            ])
        }
        for file in page.files {
            guard isJSON else {
                output.writeFields(["-".bytes, file.path.bytes], message: file.issue)
                continue
            }
            output.write(json: ["path": .text(file.path), "issue": .text(file.issue)])
        }
    }

    /// Executes `stated --check`, which can read a store; this program stays small without that
    /// code.
    private static func checkStore(_ invocation: Invocation) throws(Failure) {
        var arguments = ["stated".bytes, "--check".bytes]
        if let directory = invocation.value("--data") { arguments += ["--data".bytes, directory] }
        let argv = cStrings(arguments)
        if let beside = programBeside() { execv(beside, argv) }
        execvp("stated", argv)
        throw .file("cannot run 'stated --check': \(lastError)")
    }

    /// The path of the `stated` in this program's directory; nil if there is none.
    private static func programBeside() -> String? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count)
        var bytes = path.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
        // Without /proc: the name by which it was started.
        if bytes.isEmpty { bytes = ProcessArguments.program() }
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        let beside = String(decoding: bytes[...slash], as: UTF8.self) + "stated"
        return access(beside, X_OK) == 0 ? beside : nil
    }
}
