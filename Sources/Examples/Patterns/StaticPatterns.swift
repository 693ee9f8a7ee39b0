import StateSQLite

/// Static persistent containers: nothing is opened, and nothing can fail, before the first use.
private enum Settings {
    static let storage = StateStorage.database("\(Scratch.shared.path)/settings.db")
    static let volume = PersistentState(0.5, key: "audio/volume", in: storage)
    static let rating = State<Int?>(nil, key: "rating")
    static let lost = PersistentState(1, key: "lost", in: .database("/nonexistent/settings.db"))
}

extension Scratch {
    fileprivate static let shared: Scratch = {
        do { return try Scratch() } catch { fatalError("\(error)") }
    }()
}

extension Example {
    static let statics = Example(
        name: "static-containers",
        summary: "static persistent containers without try!, opened in one place"
    ) { checks in
        defer { Scratch.shared.remove() }
        try await Settings.storage.open()
        try await Settings.volume ~> 0.75
        checks.expect(Settings.volume.value == 0.75, "a static container is stored")
        Settings.rating ~> 4
        checks.expect(Settings.rating.value == 4, "and one in memory has one type parameter")
        checks.expect(Settings.lost.value == 1, "without its storage it has its default value")
        checks.expect(.storage, "and each change says what is missing") {
            try Settings.lost.set(2)
        }
    }

    static let testScope = Example(
        name: "test-scope",
        summary: "a scope of a test: static containers and dependencies of its own"
    ) { checks in
        defer { Scratch.shared.remove() }
        var dependencies = StateDependencies()
        dependencies.makeID = StateDependencies.countingIDs()
        try await StateScope.run(with: dependencies) {
            try await Settings.volume ~> 0.1
            checks.expect(Settings.volume.value == 0.1, "a stored static begins anew")
            checks.expect(StateDependencies.current.makeID() == "id-1", "and ids are counted")
        }
        checks.expect(Settings.volume.value != 0.1, "outside of the scope nothing has changed")
        checks.expect(StateDependencies.current.makeID().count == 32, "and ids are random")
    }
}
