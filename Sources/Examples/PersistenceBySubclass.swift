import StateContainers

/// A number, text or Boolean in a file of its own: key, type, load at init, save in didModify.
///
/// What it adds is constant: the proof of `@unchecked Sendable`.
private class TextFileState<Value: LosslessStringConvertible & Sendable>:
    MonitoredState<Value, Never>, @unchecked Sendable
{
    let path: String

    init(_ defaultValue: Value, key: Key, in directory: String) {
        path = "\(directory)/\(key)"
        super.init(textOfFile(path).flatMap { Value($0) } ?? defaultValue, key: key)
    }

    override func didModify(_ change: StateChange<Value>) {
        writeFile(path, "\(change.new)")
        super.didModify(change)
    }
}

extension Example {
    static let subclassPersistence = Example(
        name: "persistence-by-subclass",
        summary: "a persistent container of one's own: under 20 lines"
    ) { checks in
        let scratch = try Scratch()
        let visits = TextFileState(7, key: "visits", in: scratch.path)
        checks.expect(visits.value == 7, "without a file it begins with the default")
        visits ~> { $0 += 1 }
        checks.expect(textOfFile(visits.path) == "8", "a change is saved")
        checks.expect(
            TextFileState(7, key: "visits", in: scratch.path).value == 8,
            "and loaded by the next"
        )
        // Listeners are told after the save: who heard of the last change finds it in the file.
        let told = MonitoredState(0, key: "told")
        let observation = visits.observe(initial: false) { change in told ~> change.new }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { for _ in 0..<100 { visits ~> { $0 += 1 } } }
            }
        }
        _ = try await told.wait(timeout: .seconds(20)) { $0 == 408 }
        observation.cancel()
        checks.expect(
            textOfFile(visits.path) == "408",
            "after 4 writers at once the file has the last value, not an older one"
        )
    }
}
