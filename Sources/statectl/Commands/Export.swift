import StateClient
import StateModel

extension Statectl {
    /// `export [PATTERN]`: one JSON object for each key, which `import` reads back exactly.
    static func export(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let pattern = try invocation.pattern()
        let client = try invocation.connect()
        var pages = client.pages(of: pattern)
        while let page = try attempt(try pages.next()) {
            for entry in page {
                output.write(json: ["key": .bytes(entry.key), "value": .value(entry.value ?? [])])
                try output.flushIfLarge()
            }
        }
    }
}
