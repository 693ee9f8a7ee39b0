import StateContainers

/// A number, text or Boolean in its own file: key, type, load in init, save in didModify.
///
/// What it adds is constant: the proof of `@unchecked Sendable`.
private class TextFileState<Value: LosslessStringConvertible & Sendable>:
    MonitoredState<Value>, @unchecked Sendable
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
        summary: "your own persistent container: under 20 lines"
    ) { checks in
        let scratch = try Scratch()
        let visits = TextFileState(7, key: "visits", in: scratch.path)
        checks.expect(visits.value == 7, "without a file it starts with the default")
        visits ~> { $0 += 1 }
        checks.expect(textOfFile(visits.path) == "8", "a change is saved")
        checks.expect(
            TextFileState(7, key: "visits", in: scratch.path).value == 8,
            "the next container loads it"
        )
        // Listeners run after the save: a listener that got the last change finds it in the file.
        let delivered = MonitoredState(0, key: "delivered")
        let observation = visits.observe(initial: false) { change in delivered ~> change.new }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { for _ in 0..<100 { visits ~> { $0 += 1 } } }
            }
        }
        _ = try await delivered.wait(timeout: .seconds(20)) { $0 == 408 }
        observation.cancel()
        checks.expect(
            textOfFile(visits.path) == "408",
            "after 4 concurrent writers the file has the last value"
        )
    }
}
