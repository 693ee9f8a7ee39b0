import StateSQLite
import StateSecrets

private struct Login: Codable, Sendable {
    var user = "ada"
    @Redacted var password = ""
}

/// What is stored under a key, as text.
private func textOfEntry(_ key: Key, _ keyspace: LocalKeyspace) -> String {
    String(decoding: keyspace.entry(for: key)?.value ?? [], as: UTF8.self)
}

extension Example {
    static let secretState = Example(
        name: "secret-state",
        summary: "a password that is encrypted at rest and in no description or error"
    ) { checks in
        let scratch = try Scratch()
        let path = scratch.path(of: "app.db")
        let key = try SecretKey.file(scratch.path(of: "app.key"))
        let database = try await SQLiteDatabase(path: path)
        let store = database.keyspace
        do {
            let login = try await SecretState(Login(), key: "login", in: store, sealedWith: key)
            try await login.modify { $0.password = "sesame" }
            checks.expect(login.value.password == "sesame", "the program has the password")
            checks.expect("\(login.value)".contains("•••"), "a description has not")
            checks.expect("\(login)" == "secret 'login'", "the container's neither")
            checks.expect(!textOfEntry("login", store).contains("sesame"), "nor has the store")
        }
        checks.expect(.undecodable, "another key opens nothing") {
            let other = SecretKey()
            _ = try SecretState(Login(), key: "login", in: store, sealedWith: other)
        }
        let login = try await SecretState(Login(), key: "login", in: store, sealedWith: key)
        checks.expect(login.value.password == "sesame", "and has changed nothing")
        withExtendedLifetime(database) {}
    }

    static let keptHistory = Example(
        name: "kept-history",
        summary: "a database that keeps no past changes, beside one that keeps them"
    ) { checks in
        let scratch = try Scratch()
        func count(_ name: String, _ history: HistoryLimits) throws -> Int {
            do {
                let database = try SQLiteDatabase(path: scratch.path(of: name), history: history)
                let note = try SQLiteState("", key: "n", in: database, durability: .memory)
                let line = String(repeating: ".", count: 2_000)
                for number in 1...20_000 { try note ~> "\(number)\(line)" }
            }
            let database = try SQLiteDatabase(path: scratch.path(of: name), history: history)
            let value = try SQLiteState("", key: "n", in: database).value
            checks.expect(value.hasPrefix("20000."), "the last value is in \(name)")
            return sizeOfFiles(in: database.path + "-log")
        }
        let kept = try count("kept.db", .keep(changes: 1_000_000))
        let plain = try count("plain.db", .none)
        checks.expect(
            plain * 2 < kept,
            "without past changes the log is much shorter: \(plain), \(kept)"
        )
    }

    static let plainWrites = Example(
        name: "set-and-overwrite",
        summary: "set is refused where the stored value cannot be read; overwrite is not"
    ) { checks in
        let database = SQLiteDatabase.inMemory
        let store = database.keyspace
        try await store.apply([.set("volume", Array("loud".utf8))])
        let volume = try await PersistentState(
            0.5,
            key: "volume",
            in: store,
            acceptsUnreadable: true
        )
        checks.expect(.undecodable, "set keeps what somebody else has stored") {
            try volume.set(0.7)
        }
        checks.expect(textOfEntry("volume", store) == "loud", "it is still there")
        try await volume.overwrite(0.7)
        checks.expect(volume.value == 0.7, "overwrite replaces it")
        try await volume.set(0.8)
        checks.expect(textOfEntry("volume", store) == "0.8", "and then set works")
        withExtendedLifetime(database) {}
    }
}
