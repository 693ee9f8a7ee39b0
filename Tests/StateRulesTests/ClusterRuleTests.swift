import StateEngine
import StateJSON
import StateRules
import Testing

/// Rules for the copy of a cluster, as they are written.
struct ClusterRuleTests {
    private let accounts = AccountDirectory(user: { $0 == "link" ? 17 : nil }, group: { _ in nil })

    private func read(_ text: String) throws -> Configuration {
        let document = JSON5Document(Array(text.utf8))
        try #require(document.faults.isEmpty)
        return try Configuration(document.value, accounts: accounts)
    }

    private func fault(_ text: String) throws -> String {
        do {
            _ = try read(text)
            return ""
        } catch let fault as OptionFault {
            return "\(fault)"
        }
    }

    @Test func `a rule names its prefix, and the configuration the link`() throws {
        let configuration = try read(
            """
            { cluster: { user: "link", node: "web1" },
              rules: [{ keys: "app/", backing: "cluster", stale: "serve", staleAfter: "10s" },
                      { keys: "app/a/", read: ["link"], history: 0 }, { keys: "/", backing: "memory" }] }
            """
        )
        let rule = try #require(configuration.clusterRule)
        #expect(rule.keys == ["app/"])
        #expect(rule.staleness == .serve)
        #expect(rule.staleTime == .seconds(10))
        #expect(configuration.cluster.user == 17)
        #expect(configuration.cluster.node == "web1")
    }

    @Test(arguments: [
        ("{ keys: 'app/', backing: 'cluster', durability: 'memory' }", "durability"),
        ("{ keys: 'app/', backing: 'cluster', lifetime: 'process' }", "lifetime"),
        ("{ keys: 'app', backing: 'cluster' }", "needs one prefix"),
        ("{ keys: '/', backing: 'cluster' }", "needs one prefix"),
        ("{ keys: 'app/*', backing: 'cluster' }", "needs one prefix"),
        ("{ keys: ['app/', 'web/'], backing: 'cluster' }", "needs one prefix"),
        ("{ keys: 'app/', backing: 'cluster', staleAfter: '2s' }", "from 3s to 1d"),
        ("{ keys: 'app/', backing: 'cluster', stale: 'never' }", "stale"),
        ("{ keys: 'app/', stale: 'serve' }", "needs backing: \"cluster\""),
        (
            "{ keys: 'a/', backing: 'cluster' }, { keys: 'b/', backing: 'cluster' }",
            "one such prefix"
        ),
        (
            "{ keys: 'a/', backing: 'cluster' }, { keys: 'a/m/', backing: 'memory' }",
            "may match keys"
        ),
        (
            "{ keys: 'a/', backing: 'cluster' }, { keys: 'a*/m', backing: 'memory' }",
            "may match keys"
        ),
    ])
    func `what has no meaning for such keys is refused`(rules: String, reason: String) throws {
        let fault = try fault("{ cluster: { user: 'link' }, rules: [\(rules)] }")
        #expect(fault.contains(reason), "\(fault)")
    }

    @Test func `the link must be named`() throws {
        let rules = "rules: [{ keys: 'app/', backing: 'cluster' }]"
        #expect(try fault("{ \(rules) }").contains("cluster: { user: … }"))
        #expect(try fault("{ cluster: { user: 'nobody else' }, \(rules) }").contains("no user"))
        #expect(
            try fault("{ cluster: { user: 'link', node: 'a/b' }, \(rules) }").contains(
                "without '/'"
            )
        )
        #expect(try fault("{ cluster: { user: 'link', nodes: 'a' }, \(rules) }").contains("nodes"))
    }
}
