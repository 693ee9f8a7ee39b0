import StateTestSupport
import Testing

/// `contrib/ansible`: the module's functions, without Ansible.
struct AnsibleModuleTests {
    @Test func `the module changes what differs, shows it, and then changes nothing`() throws {
        let result = try runPythonTests(in: "contrib/ansible")
        #expect(result.exitCode == 0, "\(result)")
    }
}
