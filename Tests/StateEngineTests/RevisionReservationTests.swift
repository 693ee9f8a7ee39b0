import Glibc
import StateEngine
import StateTestSupport
import Testing

/// Revisions that no storage keeps, and the file that says up to where they were told.
struct RevisionReservationTests {
    let scratch: TemporaryDirectory
    let path: String

    init() throws {
        scratch = try TemporaryDirectory()
        path = scratch.path(of: "memory.revisions")
    }

    private func reservation(block: Int64 = 1 << 24) throws -> RevisionReservation {
        try RevisionReservation(path: path, block: block)
    }

    // MARK: The file

    @Test func `the file is 4 KiB, and a reservation in it is where the next life begins`() throws {
        let first = try reservation()
        #expect(first.floor == 0)
        #expect(try first.raise() == 1 << 24)
        #expect(try readFile(path).count == 4_096)
        #expect(try reservation().floor == 1 << 24)
        #expect(try first.raise() == 2 << 24)
        #expect(try first.raise() == 3 << 24)
        #expect(try reservation().floor == 3 << 24)
    }

    @Test(arguments: [1, 3 << 24, 1 << 32] as [Int64])
    func
        `a reservation that is raised above far revisions stays above them, whichever slot is damaged`(
            revision: Int64
        ) throws
    {
        let reservation = try reservation()
        try reservation.raise()
        let raised = try reservation.raise(above: revision)
        #expect(raised == max(1 << 24, revision) + (1 << 24))
        let bytes = try readFile(path)
        for slot in [0, 2_048] {
            var torn = bytes
            torn.replaceSubrange(slot..<slot + 24, with: [UInt8](repeating: 0xFF, count: 24))
            #expect(try RevisionReservation(path: scratch.write(torn, to: "torn")).floor >= raised)
        }
    }

    @Test func `a reservation is overwritten in place`() throws {
        let reservation = try reservation()
        try reservation.raise()
        var status = stat()
        stat(path, &status)
        let inode = status.st_ino
        for _ in 0..<5 { try reservation.raise() }
        stat(path, &status)
        #expect(status.st_ino == inode)
    }

    @Test(arguments: 0...24)
    func `a write that a crash tore anywhere leaves every revision that was told below`(
        byteCount: Int
    ) throws {
        let reservation = try reservation()
        for _ in 0..<3 {
            let told = try reservation.raise()
            let before = try readFile(path)
            try reservation.raise()
            var torn = before
            let after = try readFile(path)
            let slot = before[..<2_048] == after[..<2_048] ? 2_048 : 0
            torn.replaceSubrange(slot..<slot + byteCount, with: after[slot..<slot + byteCount])
            let place = try scratch.write(torn, to: "torn")
            #expect(try RevisionReservation(path: place).floor >= told)
        }
    }

    @Test(arguments: [0, 2_048], 0..<24)
    func `a byte that the disk lost does not bring a lower revision`(
        slot: Int,
        byte: Int
    ) throws {
        let reservation = try reservation()
        for _ in 0..<4 {
            let told = try reservation.raise()
            var bytes = try readFile(path)
            bytes[slot + byte] ^= 0x10
            let place = try scratch.write(bytes, to: "damaged")
            let found = try RevisionReservation(path: place)
            #expect(found.floor >= told)
            // Both slots are whole again.
            #expect(try found.raise() > told)
            #expect(try RevisionReservation(path: place).floor == found.status.reserved)
        }
    }

    @Test func `a file that is damaged in both slots is refused and left as it is`() throws {
        try reservation().raise()
        var bytes = try readFile(path)
        bytes[9] ^= 1
        bytes[2_048 + 9] ^= 1
        try scratch.write(bytes, to: "memory.revisions")
        let error = #expect(throws: StateError.self) { try reservation() }
        #expect(error?.code == .corrupt)
        #expect(error?.message.contains(path) == true)
        #expect(try readFile(path) == bytes)
    }

    @Test func `revisions end at 2^53`() throws {
        let bytes = ReservedRevisionFile.slot(RevisionReservation.largestRevision - 5)
        let rest = [UInt8](repeating: 0, count: 2_024)
        try scratch.write(bytes + rest + bytes + rest, to: "memory.revisions")
        let reservation = try reservation(block: 4)
        try reservation.raise()
        #expect(throws: StateError.self) { try reservation.raise() }
        #expect(reservation.status.failure?.message.contains("2^53") == true)
    }

    @Test func `a file that somebody removed or put back is written anew`() throws {
        let reservation = try reservation(block: 16)
        try reservation.raise()
        let old = try readFile(path)
        try reservation.raise()
        unlink(path)
        #expect(try reservation.raise() == 48)
        #expect(try self.reservation().floor == 48)
        try scratch.write(old, to: "memory.revisions")
        #expect(try reservation.raise() == 64)
        #expect(try self.reservation().floor == 64)
    }

    @Test(arguments: [0, 2_048])
    func `what is given back is not reserved any more, whichever slot is damaged later`(
        slot: Int
    ) throws {
        let first = try reservation()
        for _ in 0..<3 { try first.raise() }
        try first.lower(to: 1_000)
        #expect(try reservation().floor == 1_000)
        let second = try reservation()
        #expect(try second.raise() == 1_000 + 1 << 24)
        var torn = try readFile(path)
        torn.replaceSubrange(slot..<slot + 24, with: [UInt8](repeating: 0xFF, count: 24))
        #expect(
            try RevisionReservation(path: scratch.write(torn, to: "torn")).floor
                >= second.status.reserved
        )
    }

    @Test func `a reservation of others is not lowered, and none is made`() throws {
        let first = try reservation(block: 16)
        try first.raise()
        let second = try reservation(block: 16)
        try second.raise()
        try first.lower(to: 3)
        #expect(try reservation().floor == 32)
        unlink(path)
        try second.lower(to: 20)
        #expect(access(path, F_OK) != 0)
    }

    @Test func `a reservation that cannot be given back stays as it is`() throws {
        let first = try reservation()
        try first.raise()
        try #require(mkdir(path + ".new", 0o700) == 0)
        #expect(throws: StateError.self) { try first.lower(to: 7) }
        #expect(try reservation().floor == 1 << 24)
    }

    // MARK: The keyspace

    private func begin() throws -> LocalKeyspace {
        try LocalKeyspace(backing: MemoryBacking(directory: scratch.path))
    }

    @Test func `no revision is told above the reservation in the file`() throws {
        let backing = MemoryBacking(directory: scratch.path, block: 8)
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        var last: Int64 = 0
        for number in 0..<200 {
            let revision = try retried(while: .readOnly) {
                try keyspace.apply([.set("k", [UInt8(number)])])
            }
            #expect(revision > last)
            #expect(try ReservedRevisionFile(path: path).read()?.reserved ?? 0 >= revision)
            last = revision
        }
    }

    @Test func `the next life of a keyspace begins above the last`() throws {
        var last: Int64 = 0
        var epochs: Set<Epoch> = []
        for _ in 0..<5 {
            let backing = MemoryBacking(directory: scratch.path, block: 64)
            let keyspace = try LocalKeyspace(backing: backing)
            #expect(keyspace.revision >= last)
            epochs.insert(keyspace.epoch)
            let first = try keyspace.apply([.set("k", [1])])
            #expect(first > last)
            // A clean end uses up no block, and what was told last is a revision of the past.
            #expect(first <= last + 2)
            #expect(keyspace.revision > last)
            last = first
            keyspace.close()
        }
        #expect(epochs.count == 5)
    }

    @Test func `a directory has one owner at a time`() throws {
        let keyspace = try begin()
        defer { keyspace.close() }
        let error = #expect(throws: StateError.self) { try begin() }
        #expect(error?.code == .locked)
        #expect(error?.message.contains("process \(getpid())") == true)
    }

    @Test
    func
        `where the reservation cannot be raised, writes end with the block and come back by themselves`()
        throws
    {
        let backing = MemoryBacking(directory: scratch.path, block: 64)
        let failures = Observed<[String?]>([])
        backing.onReservation = { failure in failures.update { $0.append(failure) } }
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        // A directory can neither be opened for writing nor be replaced by a file.
        unlink(path)
        try #require(mkdir(path, 0o700) == 0)
        for _ in 0..<64 { try keyspace.apply([.set("k", [1])]) }
        #expect(failures.wait { $0.count == 1 })
        let error = #expect(throws: StateError.self) { try keyspace.apply([.set("k", [2])]) }
        #expect(error?.code == .readOnly)
        #expect(error?.message.contains("\(path) is a directory, not a file") == true)
        #expect(throws: StateError.self) { try keyspace.apply([.delete("k")]) }
        #expect(keyspace.revision == 64)
        #expect(keyspace.entry(for: "k")?.value == [1])
        #expect(keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) } == [])

        try #require(rmdir(path) == 0)
        #expect(failures.wait { $0.count == 2 })
        #expect(failures.current.last == .some(nil))
        #expect(try retried(while: .readOnly) { try keyspace.apply([.set("k", [3])]) } == 65)
        #expect(try ReservedRevisionFile(path: path).read()?.reserved == 128)
    }

    @Test func `a keyspace whose reservation cannot be written does not begin`() throws {
        try #require(mkdir(path + ".new", 0o700) == 0)
        let error = #expect(throws: StateError.self) { try begin() }
        #expect(error?.message.contains(path) == true)
    }
}
