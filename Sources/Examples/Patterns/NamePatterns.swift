import StateSQLite
import StateStore

// A program's own types, named as types of the library are.
private struct Key: Codable, Hashable, Sendable { var note = "C#" }
private struct Entry: Codable, Hashable, Sendable { var key = Key() }
private struct Limits: Codable, Hashable, Sendable { var loudest = Min(value: 0.1) }
private struct Min: Codable, Hashable, Sendable { var value: Double }
private typealias Bytes = [UInt8]

private enum Message: Sendable { case press(Key) }

extension Example {
    static let ownNames = Example(
        name: "own-names",
        summary: "types named Key, Entry, Limits, Min, Bytes and Message beside the library's"
    ) { checks in
        let database = SQLiteDatabase.inMemory
        let entry = try await SQLiteState(Entry(), key: "piano/entry", in: database)
        try await entry.modify { $0.key.note = "D" }
        checks.expect(entry.value == Entry(key: Key(note: "D")), "the program's own are stored")
        let limits = try await SQLiteState(Limits(), key: "piano/limits", in: database)
        try await limits.modify { $0.loudest = Min(value: 0.9) }
        checks.expect(limits.value.loudest.value == 0.9, "in a value of theirs, too")

        let reducer = Reduce<[Key], Message, Never, Never> { keys, message in
            if case .input(.press(let key)) = message { keys.append(key) }
            return .none
        }
        let store = Store([], reducer: reducer)
        try await store.send(.press(Key())).finished()
        checks.expect(store.state == [Key()], "a store has messages of the program")

        let place: StateSQLite.Key = "piano/entry"
        let found: StateSQLite.Entry? = database.keyspace.entry(for: place)
        let bytes: Bytes? = found?.value
        checks.expect(bytes != nil, "the library's have the name of its module in front")
    }
}
