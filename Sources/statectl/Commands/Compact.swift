import Glibc
import StateClient
import StateModel

extension Statectl {
    /// `compact`: removes superseded changes from the history.
    static func compact(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let moment = try invocation.moment("--to")
        let shrinks = invocation.has("--shrink")
        let client = try invocation.connect()
        let revision = try attempt(try moment?.firstKept(client))
        let progress = ProgressLine("compacting" + (shrinks ? " and shrinking" : "") + " …")
        let result = Result { () throws(StateError) in
            try client.compact(to: revision, shrinks: shrinks)
        }
        progress.end()
        let done = try attempt(try result.get())
        guard !invocation.isJSON else {
            return output.write(json: [
                "compacted": .number(done.compacted),
                "freed": done.freedByteCount.map { .number($0) },
            ])
        }
        output.write("the history is complete from revision \(done.compacted) on\n")
        if let count = done.freedByteCount { output.write("\(count) bytes were freed\n") }
    }
}
