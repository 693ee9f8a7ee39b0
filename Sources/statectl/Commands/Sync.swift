import StateClient

extension Statectl {
    /// `sync`: waits until everything is on stable storage.
    static func sync(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let revision = try attempt(try client.sync(isLocal: invocation.has("--local")))
        guard !invocation.isJSON else { return output.write(json: ["revision": .number(revision)]) }
        output.write("everything up to revision \(revision) is on stable storage\n")
    }
}
