import Foundation
import StateDefaults
import Testing

struct UserDefaultsStateTests {
    @Test func `a default is what the container says, and the other way round`() throws {
        let suite = "stated-tests-\(UUID().uuidString)"
        let defaults = try #require(UserDefaults(suiteName: suite))
        defer { defaults.removePersistentDomain(forName: suite) }
        defaults.set("Ada", forKey: "name")
        defaults.set(true, forKey: "isTouchIDEnabled")
        defaults.set(0.5, forKey: "volume")
        defaults.synchronize()

        let name = try UserDefaultsState("", key: "name", suite: suite)
        let touchID = try UserDefaultsState(false, key: "isTouchIDEnabled", suite: suite)
        let volume = try UserDefaultsState(0.0, key: "volume", suite: suite)
        #expect(name.value == "Ada")
        #expect(touchID.value)
        #expect(volume.value == 0.5)

        try name ~> "Grace"
        try volume ~> { $0 += 0.25 }
        #expect(defaults.string(forKey: "name") == "Grace")
        #expect(defaults.string(forKey: "volume") == "0.75")
        let rating = try UserDefaultsState<Int?>(nil, key: "rating", suite: suite)
        try rating ~> 5
        #expect(defaults.string(forKey: "rating") == "5")
        try rating ~> nil
        #expect(defaults.object(forKey: "rating") == nil)
    }
}
