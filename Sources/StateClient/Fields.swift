import StateModel
import StateWire

/// A reply's fields: those of a map by name, those of a row by index.
///
/// - Throws: ``StateError/Code/invalidRequest`` if a field is missing or of another type.
struct Fields {
    private let reply: Reply
    private let verb: String

    init(_ reply: Reply, of verb: String) {
        self.reply = reply
        self.verb = verb
    }

    /// A field of a map; nil if it is not there.
    subscript(name: String) -> Reply? { reply[name] }

    /// A field of a row; nil if it is not there.
    subscript(place: Int) -> Reply? {
        reply.elements.flatMap { $0.indices.contains(place) ? $0[place] : nil }
    }

    func number(_ name: String) throws(StateError) -> Int64 { try need(self[name]?.integerValue) }
    func number(_ place: Int) throws(StateError) -> Int64 { try need(self[place]?.integerValue) }
    func text(_ name: String) throws(StateError) -> String { try need(self[name]?.textValue) }
    func text(_ place: Int) throws(StateError) -> String { try need(self[place]?.textValue) }
    func bytes(_ name: String) throws(StateError) -> [UInt8] { try need(self[name]?.byteValue) }
    func bytes(_ place: Int) throws(StateError) -> [UInt8] { try need(self[place]?.byteValue) }

    /// The rows of a field.
    func rows(_ name: String) throws(StateError) -> [Fields] {
        try Fields(need(self[name]), of: verb).rows()
    }

    /// The rows of the reply.
    func rows() throws(StateError) -> [Fields] {
        try need(reply.elements).map { Fields($0, of: verb) }
    }

    private func need<Value>(_ value: Value?) throws(StateError) -> Value {
        if let value { return value }
        throw Client.unexpected(verb)
    }
}

extension [[UInt8]] {
    /// Appends words to the arguments of a request.
    mutating func add(_ words: String...) { self += words.map { [UInt8]($0.utf8) } }
}

extension Client {
    /// Sends a command that needs RESP3: the verb, its operands, then further words.
    ///
    /// - Throws: As ``call(_:_:)``.
    func ask(
        _ verb: String,
        _ operands: [[UInt8]] = [],
        _ kind: RequestKind = [],
        words: [String] = []
    ) throws(StateError) -> Fields {
        let arguments = [Array(verb.utf8)] + operands + words.map { Array($0.utf8) }
        return Fields(try call(arguments, kind.union(.needsRESP3)), of: verb)
    }
}
