import StateTestSupport
import Testing

/// `contrib/ansible`: the module's functions, without Ansible.
struct AnsibleModuleTests {
    @Test func `the module changes what differs, shows it, and then changes nothing`() throws {
        let result = try RunningCommand(
            "env",
            [
                "STATED=\(builtProgram("stated"))", "STATECTL=\(builtProgram("statectl"))",
                "python3", "-B", "-m", "unittest", "discover", "-s",
                packageRoot + "/contrib/ansible",
            ]
            .map { Array($0.utf8) }
        )
        .finish(within: .seconds(300))
        #expect(result.exitCode == 0, "\(result)")
    }
}
