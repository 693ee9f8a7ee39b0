import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport
import StateTesting
import Testing

/// Every backing that there is.
enum Storage: CaseIterable {
    case memory, file, sqlite, log, settled

    /// Its contract, on a store in `directory`.
    func contract(in directory: TemporaryDirectory) -> BackingContract {
        let path = directory.path(of: "data")
        return switch self {
        case .memory: BackingContract(keeping: .nothing) { MemoryBacking() }
        // Some syncs for each commit: fewer of them.
        case .file:
            BackingContract(keeping: .values, commitCount: 1_000, seed: Seed.base) {
                FileBacking(directory: path)
            }
        case .sqlite:
            BackingContract(keeping: .values, seed: Seed.base) { SQLiteBacking(directory: path) }
        case .log:
            BackingContract(keeping: .history, seed: Seed.base) { LogBacking(directory: path) }
        // Settled as often as possible.
        case .settled:
            BackingContract(keeping: .values, seed: Seed.base) {
                var options = SQLiteBacking.Options()
                options.log.segmentByteCount = 64 << 10
                options.log.largeSegmentByteCount = 128 << 10
                options.settling.logByteCount = 16 << 10
                return SQLiteBacking(directory: path, options)
            }
        }
    }
}

struct BackingContractTests {
    @Test(arguments: Storage.allCases, BackingContract.Rule.allCases)
    func `a backing keeps to the contract`(storage: Storage, rule: BackingContract.Rule) throws {
        let directory = try TemporaryDirectory()
        try withExtendedLifetime(directory) { try storage.contract(in: directory).check(rule) }
    }

    @Test func `all rules hold on one store, one after the other`() throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let path = directory.path(of: "app.db")
        try BackingContract(keeping: .values, commitCount: 500, seed: Seed.base) {
            SQLiteBacking(path: path)
        }
        .check()
    }

    @Test func `a store on paper keeps to the contract`() throws {
        try PaperStore(nil).contract.check()
    }

    @Test(arguments: PaperStore.Fault.allCases)
    func `a backing that is wrong is found by the rule it breaks`(fault: PaperStore.Fault) throws {
        let violation = #expect(throws: ContractViolation.self) {
            try PaperStore(fault).contract.check(fault.rule)
        }
        #expect(violation?.rule == fault.rule.rawValue)
        #expect(violation?.description.contains(fault.finding) ?? false, "\(violation as Any)")
        #expect(throws: ContractViolation.self) { try PaperStore(fault).contract.check() }
    }
}
