import StateClient
import StateModel

extension Statectl {
    /// `status`: the state of the daemon.
    static func status(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let fields = try attempt(try client.status())
        if invocation.isJSON {
            var object: JSONLine = [:]
            for field in fields {
                object.add(field.name, field.number.map { .number($0) } ?? .text(field.text))
            }
            output.write(json: object)
        } else {
            output.writeAligned(fields.map { ($0.name, $0.text) })
        }
        let problems = fields.filter { ["storage", "store"].contains($0.name) && $0.text != "ok" }
        if !problems.isEmpty { throw .condition(5) }
    }
}
