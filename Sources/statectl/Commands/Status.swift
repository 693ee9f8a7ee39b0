import StateClient
import StateModel
import StateWire

extension Statectl {
    /// `status`: the state of the daemon.
    static func status(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let fields = try attempt(try client.status())
        let own = [
            (name: "client_socket", text: client.socketPath),
            (name: "client_socket_choice", text: client.socket.reason),
        ]
        if invocation.isJSON {
            var object: JSONLine = [:]
            for field in fields {
                object.add(field.name, field.number.map { .number($0) } ?? .text(field.text))
            }
            for field in own { object.add(field.name, .text(field.text)) }
            output.write(json: object)
        } else {
            output.writeAligned(fields.map { ($0.name, $0.text) } + own)
        }
        let problems = fields.filter { ["storage", "store"].contains($0.name) && $0.text != "ok" }
        if !problems.isEmpty { throw .condition(5) }
    }
}
