import StateEngine
import Testing

struct SystemUnitTests {
    @Test(arguments: [
        ("0::/system.slice/app.service", "app.service"),
        ("0::/system.slice/system-app.slice/app@1.service", "app@1.service"),
        ("0::/user.slice/user-7.slice/session-4.scope", "session-4.scope"),
        // What a unit makes below itself is of the unit.
        ("0::/system.slice/app.service/workers/root.service", "app.service"),
        ("0::/user.slice/user-7.slice/user@7.service/app.slice/root.service", "user@7.service"),
        (#"0::/system.slice/dev-disk-by\x2dlabel.swap"#, #"dev-disk-by\x2dlabel.swap"#),
        ("0::/system.slice/_memory.service", "memory.service"),
        // Version 1, and both beside each other.
        ("4:memory:/other.service\n1:name=systemd:/system.slice/app.service", "app.service"),
        ("1:name=systemd:/a.service\n0::/b.service", "b.service"),
        ("1:name=systemd:/a.service\n0::/", "a.service"),
    ])
    func `the unit of a process is the first part of its path that is no slice`(
        groups: String,
        unit: String
    ) {
        #expect(SystemUnit.name(inControlGroups: groups) == unit)
        #expect(SystemUnit.name(inControlGroups: groups + "\n") == unit)
    }

    @Test(arguments: [
        "", "0::/", "0::/system.slice", "0::/init", "4:memory:/app.service", "0::/../app.service",
        "0::/system.slice/../app.service", "0:app.service:/", "7:x,name=systemd:/app.service",
        "0::/.service", "0::/a b.service", "0::/ä.service",
    ])
    func `other paths name no unit`(groups: String) {
        #expect(SystemUnit.name(inControlGroups: groups) == nil)
    }
}
