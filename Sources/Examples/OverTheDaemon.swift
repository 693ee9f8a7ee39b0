import Glibc
import StateClient
import StateContainers

extension Example {
    static let featureToggle = Example(
        name: "feature-toggle",
        summary: "a feature that statectl switches on and off while the program runs",
        needs: .daemon
    ) { checks in
        let darkMode = try await RemoteState(false, key: "examples/feature/darkMode")
        try statectl("set", "examples/feature/darkMode", "true")
        _ = try await darkMode.wait(timeout: .seconds(20)) { $0 }
        checks.expect(darkMode.value, "statectl set … true switches it on")
        try statectl("delete", "examples/feature/darkMode")
        _ = try await darkMode.wait(timeout: .seconds(20)) { !$0 }
        checks.expect(!darkMode.value, "statectl delete restores the program's own default")
        try statectl("set", "examples/feature/darkMode", "maybe")
        var failures = darkMode.failures.makeAsyncIterator()
        let failure = await failures.next()
        checks.expect(failure?.code == .undecodable, "another text is reported as undecodable")
        checks.expect(!darkMode.value, "it does not change the value")
        try statectl("delete", "examples/feature/darkMode")
    }

    static let whoChangedIt = Example(
        name: "who-changed-it",
        summary: "each change names the process that made it",
        needs: .daemon
    ) { checks in
        let volume = try await RemoteState(0.5, key: "examples/who/volume")
        let causes = MonitoredState([Cause](), key: "causes")
        let observation = volume.observe(initial: false) { change in
            print("  \(change.old) -> \(change.new) by \(change.cause.command)")
            causes ~> { $0.append(change.cause) }
        }
        let peer = try statectl("set", "examples/who/volume", "0.7")
        var seen = try await causes.wait(timeout: .seconds(20)) { $0.count == 1 }
        checks.expect(seen[0].pid == peer, "the cause has the pid of the other process")
        checks.expect(seen[0].command == "statectl", "the cause has its command")
        try await volume.modify(0.9)
        seen = try await causes.wait(timeout: .seconds(20)) { $0.count == 2 }
        checks.expect(
            seen[1].pid == getpid() && seen[1].uid == seen[0].uid,
            "our own change has our pid"
        )
        observation.cancel()
        try statectl("delete", "examples/who/volume")
    }
}
