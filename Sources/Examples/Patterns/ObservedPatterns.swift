import Observation
import StateStore

private struct Profile: Hashable, Codable, Sendable {
    struct Item: Hashable, Codable, Identifiable, Sendable {
        let id: Int
        var title: String
    }

    var name = "Ada"
    var age = 36
    var nickname: String?
    var items = [Item(id: 1, title: "tea"), Item(id: 2, title: "milk")]
}

private struct Player: Sendable {
    @StateValue("audio/volume") var volume = 0.5
    @StateReader("audio/volume") var shown = 0.5
}

/// Whether a change of what `read` reads is reported while `change` runs.
private func isReported(_ read: () -> Void, while change: () -> Void) -> Bool {
    let isReported = StateLock(false)
    withObservationTracking(read) { isReported.withLock { $0 = true } }
    change()
    return isReported.withLock { $0 }
}

extension Example {
    static let scopedState = Example(
        name: "scoped-state",
        summary: "parts of a value as containers: nested, Optional, and elements by their ids"
    ) { checks in
        let profile = MonitoredState(Profile(), key: "profile")
        let name = profile.scope(\.name)
        let nickname = profile.scope(\.nickname).scope(or: "none")
        let milk = profile.scope(\.items).scope(id: 2)
        var names = name.changes().makeAsyncIterator()
        profile ~> { $0.age += 1 }
        name ~> "Grace"
        checks.expect(await names.next()?.old == "Ada", "a part reports its own changes only")
        checks.expect(nickname.value == "none", "an Optional part has a value to fall back to")
        milk ~> { $0?.title = "oat milk" }
        checks.expect(profile.value.items[1].title == "oat milk", "an element changes by its id")
        milk ~> nil
        checks.expect(profile.value.items.count == 1 && milk.value == nil, "nil removes it")
        let age = profile.binding(\.age)
        age.wrappedValue += 1
        checks.expect(profile.value.age == 38, "a binding writes one part")
    }

    static let observation = Example(
        name: "observation",
        summary: "stores and containers report to the Observation library by the property"
    ) { checks in
        let profile = MonitoredState(Profile(), key: "profile")
        let isNameReported = isReported {
            _ = profile.observed.name
        } while: {
            profile ~> { $0.age += 1 }
        }
        checks.expect(!isNameReported, "who reads the name gets no change of the age")
        let isAgeReported = isReported {
            _ = profile.observed.age
        } while: {
            profile.observed.modify { $0.age += 1 }
        }
        checks.expect(isAgeReported, "who reads the age does")
    }

    static let stateValue = Example(
        name: "state-value",
        summary: "@StateValue and @StateReader: stored properties, wherever the context stores them"
    ) { checks in
        let player = StateStorage.with(.inMemory()) { Player() }
        let isShownReported = isReported {
            _ = player.shown
        } while: {
            do { try player.$volume ~> { $0 += 0.25 } } catch { checks.expect(false, "\(error)") }
        }
        checks.expect(player.shown == 0.75, "both properties are one value")
        checks.expect(isShownReported, "and the reader's view gets the change")
    }
}
