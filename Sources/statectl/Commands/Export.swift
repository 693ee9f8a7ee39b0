import StateClient
import StateModel

extension Statectl {
    /// `export [PATTERN]`: one JSON object for each key, which `import` reads back exactly.
    static func export(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let pattern = try invocation.pattern()
        let client = try invocation.connect()
        var pages = client.pages(of: pattern)
        while let page = try attempt({ () throws(StateError) in try pages.next() }) {
            for entry in page {
                var object = JSONLine()
                object.add("key", bytes: entry.key)
                object.add(value: entry.value ?? [], named: "value", elseBase64: "base64")
                output.write(object.line)
                try output.flushIfLarge()
            }
        }
    }
}
