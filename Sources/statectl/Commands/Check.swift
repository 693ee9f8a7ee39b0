import Glibc
import StateClient
import StateModel
import StateSystem

extension Statectl {
    /// `check [PATTERN]`: what the daemon's rules refuse of what is stored; or what is wrong with a store on disk.
    static func check(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        guard !invocation.has("--store"), !invocation.has("--data") else {
            guard invocation.operands.isEmpty, !invocation.has("--json") else {
                throw .usage("'check' of a store takes no pattern and no --json")
            }
            return try checkStore(invocation)
        }
        let pattern = try invocation.pattern()
        let client = try invocation.connect()
        var (checkedCount, refusedCount) = (Int64(0), 0)
        var next: [UInt8]?
        repeat {
            let page = try attempt { () throws(StateError) in
                try client.refusals(of: pattern, after: next)
            }
            for value in page.values { write(value, invocation, &output) }
            for file in page.files { write(file, invocation, &output) }
            try output.flushIfLarge()
            checkedCount += page.checkedCount
            refusedCount += page.values.count + page.files.count
            next = page.next
        } while next != nil
        if !invocation.has("--json") {
            let verdict = refusedCount == 0 ? "nothing is refused" : "\(refusedCount) refused"
            output.write("\(checkedCount) checked: \(verdict)\n")
        }
        if refusedCount > 0 { throw .found }
    }

    private static func write(
        _ value: Client.RefusedValue,
        _ invocation: Invocation,
        _ output: inout Output
    ) {
        guard !invocation.has("--json") else {
            var object = JSONLine()
            object.add("revision", number: value.revision)
            object.add("key", bytes: value.key)
            object.add("issue", text: value.issue)
            return output.write(object.line)
        }
        output.write("\(value.revision)\t")
        output.writeEscaped(value.key)
        output.write("\t")
        output.writeEscaped(Array(value.issue.utf8))
        output.write("\n")
    }

    private static func write(
        _ file: Client.RefusedFile,
        _ invocation: Invocation,
        _ output: inout Output
    ) {
        guard !invocation.has("--json") else {
            var object = JSONLine()
            object.add("path", text: file.path)
            object.add("issue", text: file.issue)
            return output.write(object.line)
        }
        output.write("-\t")
        output.writeEscaped(Array(file.path.utf8))
        output.write("\t")
        output.writeEscaped(Array(file.issue.utf8))
        output.write("\n")
    }

    /// Becomes `stated --check`, which has what it takes to read a store; this program is small for it has not.
    private static func checkStore(_ invocation: Invocation) throws(Failure) {
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
        var bytes = path.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
        // Without /proc: as it was named.
        if bytes.isEmpty { bytes = ProcessArguments.program() }
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        let beside = String(decoding: bytes[...slash], as: UTF8.self) + "stated"
        return access(beside, X_OK) == 0 ? beside : nil
    }
}
