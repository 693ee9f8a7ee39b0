import Glibc
package import StateLog

/// A directory on a disk that keeps what it must, and loses, tears and refuses what it may.
///
/// Reads see the page cache. A sync writes the sectors that are dirty; one that fails leaves any of
/// them unwritten, and calls all of them clean, as Linux does. A power cut leaves any of the dirty
/// sectors unwritten, and any of the names that were not synced.
package final class SimulatedFiles: LogFiles, @unchecked Sendable {
    /// A call that does not do what it should.
    package enum Fault {
        case refuses(Int32)
        /// It writes a part.
        case tears(Int32)
        /// The power goes before it.
        case powerCut
    }

    fileprivate final class Node {
        var cache: [UInt8] = []
        var disk: [UInt8] = []
        var dirty: Set<Int> = []
        /// The blocks that take room.
        var given: Set<Int> = []

        init() {}

        init(copying node: Node, cached: Bool) {
            given = node.given
            disk = node.disk
            cache = cached ? node.cache : node.disk
            dirty = cached ? node.dirty : []
        }
    }

    private enum NameChange {
        case add(String, Node)
        case remove(String)
        case rename(String, String, Node)
    }

    package let sectorByteCount: Int
    fileprivate var random: SplitMix
    private var nodes: [String: Node] = [:]
    private var durableNodes: [String: Node] = [:]
    private var nameChanges: [NameChange] = []
    /// Called before each call with its number.
    package var fault: (Int) -> Fault? = { _ in nil }
    /// How many bytes there are for files; nil for any number.
    package var capacity: Int?
    /// Whether nobody can ask how much is left, as with a quota.
    package var hidesRoom = false
    /// Whether a block that is written again takes another one until that is done.
    package var isCopyOnWrite = false
    package fileprivate(set) var callCount = 0
    package fileprivate(set) var isOff = false

    package init(sectorByteCount: Int, seed: UInt64) {
        (self.sectorByteCount, random) = (sectorByteCount, SplitMix(seed: seed))
    }

    // MARK: Crashes

    /// What a later start finds.
    ///
    /// - Parameter keepsCache: Whether only the process was killed.
    /// - Returns: The directory as that start has it.
    package func restarted(keepsCache: Bool) -> SimulatedFiles {
        let next = SimulatedFiles(sectorByteCount: sectorByteCount, seed: random.next())
        (next.capacity, next.isCopyOnWrite) = (capacity, isCopyOnWrite)
        var copies: [ObjectIdentifier: Node] = [:]
        func copy(_ node: Node) -> Node {
            if let known = copies[ObjectIdentifier(node)] { return known }
            if !keepsCache { for sector in node.dirty where isLucky { write(sector, of: node) } }
            let copy = Node(copying: node, cached: keepsCache)
            copies[ObjectIdentifier(node)] = copy
            return copy
        }
        if keepsCache {
            next.nodes = nodes.mapValues(copy)
            next.durableNodes = durableNodes.mapValues(copy)
            next.nameChanges = nameChanges.map { change in
                switch change {
                case .add(let name, let node): .add(name, copy(node))
                case .remove(let name): .remove(name)
                case .rename(let name, let new, let node): .rename(name, new, copy(node))
                }
            }
            return next
        }
        var durable = durableNodes
        for change in nameChanges where isLucky { SimulatedFiles.apply(change, to: &durable) }
        next.nodes = durable.mapValues(copy)
        next.durableNodes = next.nodes
        return next
    }

    private var isLucky: Bool { random.next() & 1 == 0 }

    private static func apply(_ change: NameChange, to names: inout [String: Node]) {
        switch change {
        case .add(let name, let node): names[name] = node
        case .remove(let name): names[name] = nil
        case .rename(let name, let new, let node): (names[name], names[new]) = (nil, node)
        }
    }

    fileprivate func write(_ sector: Int, of node: Node) {
        let range = sector * sectorByteCount..<min((sector + 1) * sectorByteCount, node.cache.count)
        guard !range.isEmpty else { return }
        if node.disk.count < range.upperBound {
            node.disk += Array(repeating: 0, count: range.upperBound - node.disk.count)
        }
        node.disk.replaceSubrange(range, with: node.cache[range])
    }

    /// Changes a bit on the disk.
    package func flip(_ name: String, _ offset: Int, _ bit: Int) {
        guard let node = nodes[name], offset < node.cache.count else { return }
        node.cache[offset] ^= 1 << UInt8(bit)
        node.disk = node.cache
    }

    /// Sets a byte on the disk.
    package func put(_ byte: UInt8, in name: String, at offset: Int) {
        guard let node = nodes[name], offset < node.cache.count else { return }
        node.cache[offset] = byte
        node.disk = node.cache
    }

    package func byteCount(of name: String) -> Int { nodes[name]?.cache.count ?? 0 }

    package func forget(_ name: String) {
        nodes[name] = nil
        durableNodes[name] = nil
    }

    // MARK: Room

    fileprivate static let blockByteCount = 4_096

    /// What the files take that have names.
    package var usedByteCount: Int {
        nodes.values.reduce(0) { $0 + $1.given.count * SimulatedFiles.blockByteCount }
    }

    private var freeByteCount: Int { capacity.map { max(0, $0 - usedByteCount) } ?? .max }

    package func availableByteCount() -> Int64? {
        hidesRoom || capacity == nil ? nil : Int64(freeByteCount)
    }

    package func hasRoom(for byteCount: Int64) -> Bool { freeByteCount >= byteCount }

    /// How many of some bytes can be written.
    fileprivate func take(_ count: Int, at offset: Int, of node: Node) -> Int {
        let size = SimulatedFiles.blockByteCount
        var left = freeByteCount / size
        var done = 0
        while done < count {
            let block = (offset + done) / size
            let isNew = !node.given.contains(block)
            if isNew || isCopyOnWrite {
                guard left > 0 else { return done }
                if isNew { left -= 1 }
                node.given.insert(block)
            }
            done = min(count, (block + 1) * size - offset)
        }
        return done
    }

    // MARK: Calls

    fileprivate func begin(_ call: StaticString, _ name: String) throws(LogFileFailure) -> Fault? {
        guard !isOff else { throw LogFileFailure(call, name, EIO) }
        callCount += 1
        guard let fault = fault(callCount) else { return nil }
        switch fault {
        case .powerCut:
            isOff = true
            throw LogFileFailure(call, name, EIO)
        case .refuses(let code) where call.description != "sync":
            throw LogFileFailure(call, name, code)
        case .refuses, .tears: return fault
        }
    }

    package func names() throws(LogFileFailure) -> [String] {
        _ = try begin("readdir", ".")
        return Array(nodes.keys)
    }

    package func open(_ name: String) throws(LogFileFailure) -> any LogFile {
        _ = try begin("open", name)
        guard let node = nodes[name] else { throw LogFileFailure("open", name, ENOENT) }
        return File(self, name, node)
    }

    package func create(_ name: String) throws(LogFileFailure) -> any LogFile {
        _ = try begin("open", name)
        guard nodes[name] == nil else { throw LogFileFailure("open", name, EEXIST) }
        let node = Node()
        nodes[name] = node
        nameChanges.append(.add(name, node))
        return File(self, name, node)
    }

    package func rename(_ name: String, to new: String) throws(LogFileFailure) {
        _ = try begin("rename", name)
        guard let node = nodes[name] else { throw LogFileFailure("rename", name, ENOENT) }
        precondition(nodes[new] == nil, "\(new) is overwritten")
        (nodes[name], nodes[new]) = (nil, node)
        nameChanges.append(.rename(name, new, node))
    }

    package func remove(_ name: String) throws(LogFileFailure) {
        _ = try begin("unlink", name)
        guard nodes.removeValue(forKey: name) != nil else {
            throw LogFileFailure("unlink", name, ENOENT)
        }
        nameChanges.append(.remove(name))
    }

    package func syncNames() throws(LogFileFailure) {
        if case .refuses(let code)? = try begin("sync", ".") {
            throw LogFileFailure("sync", ".", code)
        }
        for change in nameChanges { SimulatedFiles.apply(change, to: &durableNodes) }
        nameChanges = []
    }

    /// Nobody else uses its names.
    package func finding(among files: [(name: String, file: any LogFile)]) -> String? { nil }

    /// It is used by one thread at a time, as the directory.
    private final class File: LogFile, @unchecked Sendable {
        let files: SimulatedFiles
        let name: String
        let node: Node

        init(_ files: SimulatedFiles, _ name: String, _ node: Node) {
            (self.files, self.name, self.node) = (files, name, node)
        }

        func byteCount() throws(LogFileFailure) -> Int {
            _ = try files.begin("stat", name)
            return node.cache.count
        }

        func read(
            _ target: UnsafeMutableRawBufferPointer,
            at offset: Int
        ) throws(LogFileFailure) -> Int {
            _ = try files.begin("read", name)
            let count = max(0, min(target.count, node.cache.count - offset))
            if count > 0 { target.copyBytes(from: node.cache[offset..<offset + count]) }
            return count
        }

        func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileFailure) {
            let fault = try files.begin("write", name)
            var count = bytes.count
            if case .tears? = fault { count = Int(files.random.next() % UInt64(count + 1)) }
            let taken = files.take(count, at: offset, of: node)
            let isFull = taken < count
            count = taken
            if node.cache.count < offset + count {
                node.cache += Array(repeating: 0, count: offset + count - node.cache.count)
            }
            if count > 0 {
                node.cache.replaceSubrange(
                    offset..<offset + count,
                    with: UnsafeRawBufferPointer(rebasing: bytes[..<count])
                )
                let size = files.sectorByteCount
                node.dirty.formUnion(offset / size...(offset + count - 1) / size)
            }
            if case .tears(let code)? = fault { throw LogFileFailure("write", name, code) }
            if isFull { throw LogFileFailure("write", name, ENOSPC) }
        }

        func setByteCount(_ byteCount: Int) throws(LogFileFailure) {
            _ = try files.begin("truncate", name)
            if node.cache.count > byteCount {
                // The disk may have the rest after a loss of power.
                node.cache.removeLast(node.cache.count - byteCount)
                node.dirty = node.dirty.filter { $0 * files.sectorByteCount < byteCount }
                node.given = node.given.filter { $0 * SimulatedFiles.blockByteCount < byteCount }
            } else {
                node.cache += Array(repeating: 0, count: byteCount - node.cache.count)
                node.disk += Array(repeating: 0, count: max(0, byteCount - node.disk.count))
            }
        }

        func sync() throws(LogFileFailure) {
            let fault = try files.begin("sync", name)
            let isWhole = fault == nil
            for sector in node.dirty where isWhole || files.isLucky {
                files.write(sector, of: node)
            }
            node.dirty = []
            switch fault {
            case .refuses(let code), .tears(let code): throw LogFileFailure("sync", name, code)
            case .powerCut, nil: break
            }
        }
    }
}
