import StateClient
import StateContainers
import StateSQLite
import StateTestSupport
import StateTesting
import Testing

/// Every keyspace that there is.
enum KeyspaceKind: CaseIterable {
    case memory, file, sqlite, daemon

    /// Runs `body` with a keyspace, and the same on a second connection where there is such a thing.
    func open<R>(_ body: (any Keyspace, (any Keyspace)?) async throws -> R) async throws -> R {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        switch self {
        case .memory: return try await local(MemoryBacking(), body)
        case .file:
            return try await local(FileBacking(directory: directory.path(of: "conf")), body)
        case .sqlite:
            return try await local(SQLiteBacking(directory: directory.path(of: "data")), body)
        case .daemon:
            let server = try ServedKeyspace(SQLiteBacking(directory: directory.path(of: "data")))
            defer { server.stop() }
            let keyspaces = try (0..<2).map { _ in try RemoteKeyspace(socket: server.socketPath) }
            defer { for keyspace in keyspaces { keyspace.close() } }
            return try await body(keyspaces[0], keyspaces[1])
        }
    }

    private func local<R>(
        _ backing: any Backing,
        _ body: (any Keyspace, (any Keyspace)?) async throws -> R
    ) async throws -> R {
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        return try await body(keyspace, nil)
    }
}

struct KeyspaceContractTests {
    @Test(arguments: KeyspaceKind.allCases, KeyspaceContract.Rule.allCases)
    func `a keyspace keeps to the contract`(
        kind: KeyspaceKind,
        rule: KeyspaceContract.Rule
    ) async throws {
        try await kind.open { keyspace, other in
            try KeyspaceContract(keyspace, other: other, seed: Seed.base).check(rule)
        }
    }

    @Test(arguments: KeyspaceKind.allCases, ContainerContract.Rule.allCases)
    func `containers keep to the contract`(
        kind: KeyspaceKind,
        rule: ContainerContract.Rule
    ) async throws {
        try await kind.open { keyspace, other in
            try await ContainerContract(keyspace, other: other).check(rule)
        }
    }

    @Test func `all rules hold in one keyspace, one after the other, beside what is there`()
        async throws
    {
        try await KeyspaceKind.memory.open { keyspace, _ in
            let mine = Mutation.set("contract/0/mine", [1])
            try await keyspace.apply([mine])
            try KeyspaceContract(keyspace, seed: Seed.base).check()
            try await ContainerContract(keyspace).check()
            let left = try keyspace.entries(.everything, after: nil, limit: 10)
            #expect(left.map(\.key) == ["contract/0/mine"])
        }
    }

    @Test(arguments: FaultyKeyspace.Fault.allCases)
    func `a keyspace that is wrong is found by the rule it breaks`(
        fault: FaultyKeyspace.Fault
    ) throws {
        let keyspace = try FaultyKeyspace(fault)
        defer { keyspace.close() }
        let contract = KeyspaceContract(keyspace, patience: .seconds(1))
        let violation = #expect(throws: ContractViolation.self) { try contract.check(fault.rule) }
        #expect(violation?.rule == fault.rule.rawValue)
        #expect(violation?.description.contains(fault.rule.rawValue) ?? false)
    }

    @Test(arguments: [
        (FaultyKeyspace.Fault.ignoresConditions, ContainerContract.Rule.losesNothing),
        (.deletesNothing, .knowsItsOrigin),
    ])
    func `containers on a keyspace that is wrong are found by the rule that breaks`(
        fault: FaultyKeyspace.Fault,
        rule: ContainerContract.Rule
    ) async throws {
        let keyspace = try FaultyKeyspace(fault)
        defer { keyspace.close() }
        let violation = await #expect(throws: ContractViolation.self) {
            try await ContainerContract(keyspace).check(rule)
        }
        #expect(violation?.rule == rule.rawValue)
    }

    @Test func `a keyspace without a fault keeps to both contracts`() async throws {
        let keyspace = try FaultyKeyspace(nil)
        defer { keyspace.close() }
        try KeyspaceContract(keyspace).check()
        try await ContainerContract(keyspace).check()
    }
}
