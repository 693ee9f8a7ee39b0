import StateContainers

/// A view that draws the device's location for each change that it gets.
private final class Map: StateListener {
    let drawn = MonitoredState([StateChange<AppState.Location>](), key: "map/drawn")

    func stateModified<Value, Failure>(
        _ state: StateContainer<Value, Failure>,
        _ change: StateChange<Value>
    ) {
        guard let change = change as? StateChange<AppState.Location> else { return }
        drawn ~> { $0.append(change) }
    }
}

extension Example {
    static let listeners = Example(
        name: "listeners",
        summary: "a listener attached weakly; one that is hidden pauses and is called once"
    ) { checks in
        let location = MonitoredState(
            AppState.Location(latitude: 0, longitude: 0),
            key: "app/deviceLocation"
        )
        let map = Map()
        var hidden: Map? = Map()
        weak let released = hidden
        location.attach(listener: map)
        location.attach(listener: map)
        if let hidden { location.attach(listener: hidden) }
        checks.expect(location.allListeners.count == 2, "a listener attached twice is there once")
        hidden = nil
        checks.expect(released == nil, "a container does not retain listeners")
        checks.expect(location.allListeners.count == 1, "a released listener is no longer attached")

        location ~> { $0.latitude = 1 }
        _ = try await map.drawn.wait(timeout: .seconds(20)) { $0.last?.new.latitude == 1 }
        location.pause(listener: map)
        for step in 2...100 { location ~> { $0.latitude = Double(step) } }
        checks.expect(map.drawn.value.count == 1, "a hidden map draws nothing")
        location.resume(listener: map)
        let drawn = try await map.drawn.wait(timeout: .seconds(20)) { $0.count == 2 }
        checks.expect(
            drawn[1].old.latitude == 1 && drawn[1].new.latitude == 100,
            "shown again, it draws once, from the old location to the present one"
        )
        checks.expect(drawn[1].skipped == 98, "98 steps were skipped")
        location.detach(listener: map)
        location ~> { $0.latitude = 101 }
        checks.expect(location.allListeners.isEmpty, "a detached listener gets no more changes")
    }
}
