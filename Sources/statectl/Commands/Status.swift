import StateClient
import StateModel

extension Statectl {
    /// `status`: what the daemon says of itself.
    static func status(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let fields = try attempt { () throws(StateError) in try client.status() }
        guard invocation.has("--json") else {
            writeAligned(fields.map { ($0.name, Array($0.text.utf8)) }, &output)
            return
        }
        var object = JSONLine()
        for field in fields {
            if let number = field.number {
                object.add(field.name, number: number)
            } else {
                object.add(field.name, text: field.text)
            }
        }
        output.write(object.line)
    }
}
