import StateContainers

/// The state of an app as keyed containers, one for each thing that changes by itself.
struct AppState: Sendable {
    static let themeColor = State("blue", key: "app/themeColor")
    static let appRating = State(Int?.none, key: "app/appRating")
    static let currentCEO = CEO(Person("Steve"), key: "app/currentCEO")
    static let deviceLocation = MonitoredState(
        Location(latitude: 37.33, longitude: -122.01),
        key: "app/deviceLocation"
    )

    /// A persistent container needs a file, which may be missing: so it is opened once.
    let isTouchIDEnabled: FileState<Bool>

    init(in directory: StateDirectory) throws(StateError) {
        isTouchIDEnabled = try FileState(false, key: "isTouchIDEnabled", in: directory)
    }

    struct Location: Hashable, Sendable {
        var latitude: Double
        var longitude: Double
    }

    /// A value that locks itself; its container must be notified of changes with `touch()`.
    final class Person: Sendable {
        private let guarded: StateLock<String>

        init(_ name: String) { guarded = StateLock(name) }

        var name: String { guarded.withLock { $0 } }

        func rename(_ name: String) { guarded.withLock { $0 = name } }
    }

    /// A container that counts its changes.
    final class CEO: State<Person>, @unchecked Sendable {
        let changeCount = StateLock(0)

        override func didModify(_ change: StateChange<Person>) {
            super.didModify(change)
            changeCount.withLock { $0 += 1 }
        }
    }
}

extension Example {
    static let appState = Example(
        name: "app-state",
        summary: "keyed containers in an AppState: in memory, Optional, self-locked, persistent"
    ) { checks in
        AppState.themeColor ~> "green"
        checks.expect(AppState.themeColor.value == "green", "a modify is there when it returns")
        checks.expect(AppState.appRating.value == nil, "the app is not rated")
        AppState.appRating ~> 4
        AppState.appRating ~> { rating in rating = rating.map { $0 + 1 } }
        checks.expect(AppState.appRating.value == 5, "now it is: 4, and one more")
        AppState.currentCEO.value.rename("Tim")
        AppState.currentCEO.touch()
        checks.expect(AppState.currentCEO.value.name == "Tim", "Tim follows Steve")
        checks.expect(
            AppState.currentCEO.changeCount.withLock { $0 } == 1,
            "touch() publishes the change, once"
        )
        AppState.deviceLocation ~> { $0.latitude = 48.4 }
        checks.expect(
            AppState.deviceLocation.value == .init(latitude: 48.4, longitude: -122.01),
            "one part of a value changes in place"
        )
        AppState.appRating ~> 0
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<10_000 { AppState.appRating ~> { $0 = ($0 ?? 0) + 1 } }
                }
            }
        }
        checks.expect(AppState.appRating.value == 40_000, "4 tasks add 10,000 each: none is lost")

        let scratch = try Scratch()
        for run in 1...2 {
            let app = try await AppState(in: StateDirectory(path: scratch.path(of: "app")))
            checks.expect(app.isTouchIDEnabled.value == (run == 2), "Touch ID, run \(run)")
            try await app.isTouchIDEnabled ~> true
        }
    }
}
