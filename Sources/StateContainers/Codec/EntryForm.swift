package import StateEngine

/// A store whose entries have a form of their own: files for people, property lists.
package protocol EntryForm: Backing {
    /// The codec for values of the standard codec of a version; nil if they are written as by any
    /// other codec.
    func standard<Value: Codable & Sendable>(
        _ version: Int,
        _ migrations: [StateMigration]
    ) -> StateCodec<Value>?

    /// The codec for what `codec` writes.
    func custom<Value>(_ codec: StateCodec<Value>) -> StateCodec<Value>
}

/// An object or an array has a line for each element.
extension FileBacking: EntryForm {
    package func standard<Value: Codable & Sendable>(
        _ version: Int,
        _ migrations: [StateMigration]
    ) -> StateCodec<Value>? {
        if version == 1, StateCodec<Value>.bare != nil { return nil }
        let form = StandardForm<Value>(version, migrations, isIndented: true)
        return StateCodec(encode: form.encode, decodeStored: form.decode)
    }

    package func custom<Value>(_ codec: StateCodec<Value>) -> StateCodec<Value> { codec }
}
