import CLinux
import Glibc
import StateEngine
import StateSystem

/// The connections and processes that keys live as long as.
///
/// A connection is a holder from its first such key on. Its number is new, or that of a connection
/// of the daemon's last run whose keys it has claimed. A process is a holder while it has such keys
/// or connections, and is watched by a descriptor that becomes readable when it ends.
///
/// Used only by the loop thread.
final class Lifetimes {
    struct Process {
        let descriptor: Int32
        /// Of the connection that it was found by; nil if it is one of the daemon's last run.
        var uid: UInt32?
        var connectionCount = 0
    }

    let settings: Settings
    let registry: Registry
    private let poller = Poller()
    private(set) var processes: [Holder: Process] = [:]
    /// How many there are of each user.
    private(set) var processCounts: [UInt32: Int] = [:]
    /// The processes by descriptor.
    private var watched: [Int32: Holder] = [:]
    /// The connection that is a holder; not retained, because a connection takes itself out.
    var connections: [Holder: Unmanaged<ConnectionHolders>] = [:]
    private lazy var boot = Lifetimes.bootIdentity()
    /// Whether the daemon stops: connections that end now are those of its last run.
    var isStopping = false

    init(_ settings: Settings, _ registry: Registry) {
        (self.settings, self.registry) = (settings, registry)
    }

    /// Readable when a process has ended.
    var descriptor: Int32 { poller.descriptor }

    /// How many seconds after a start keys may be claimed.
    var graceMilliseconds: Int64 { settings.options.graceMilliseconds }

    /// Looks for the holders of the daemon's last run: processes still run or not, connections may
    /// come back.
    func start(_ core: KeyspaceCore) {
        for holder in core.entries.deadlines.holders.awaited where holder.lifetime == .process {
            let descriptor = clinux_process(holder.pid)
            // Order matters: now that there is a descriptor, the number cannot be another's.
            guard descriptor >= 0, process(holder.pid) == holder, watch(descriptor, holder, core)
            else {
                if descriptor >= 0 { close(descriptor) }
                core.endHolder(holder)
                continue
            }
        }
        core.awaitHolders(milliseconds: graceMilliseconds)
    }

    // MARK: Processes

    /// The process of this number as a holder.
    private func process(_ pid: Int32) -> Holder {
        Holder(process: pid, tag: boot.mixed(with: clinux_process_start(pid)))
    }

    private func watch(_ descriptor: Int32, _ holder: Holder, _ core: KeyspaceCore) -> Bool {
        let token = UInt64(UInt32(bitPattern: descriptor))
        guard core.admit(holder), poller.add(descriptor, Poller.readable, token: token) else {
            return false
        }
        processes[holder] = Process(descriptor: descriptor)
        watched[descriptor] = holder
        return true
    }

    /// The process of a connection; nil if it has ended, or is not visible.
    ///
    /// - Throws: ``StateError/Code/limit`` if there is no descriptor for it.
    func process(of connection: Connection, _ core: KeyspaceCore) throws(StateError) -> Holder? {
        let pid = connection.peer.pid
        guard pid > 0 else { return nil }
        if processes[process(pid)] == nil { try checkPlaces(for: connection) }
        var descriptor = clinux_peer_process(connection.descriptor)
        if descriptor < 0 {
            descriptor = clinux_process(pid)
            guard descriptor >= 0 || errno != EMFILE && errno != ENFILE else {
                throw StateError(
                    .limit,
                    "the daemon has no more file descriptors to watch process \(pid); try again "
                        + "later"
                )
            }
            // If it has ended, the number may be another's by now.
            if descriptor >= 0, connection.hasHungUp {
                close(descriptor)
                descriptor = -1
            }
        }
        guard descriptor >= 0 else { return nil }
        let holder = process(pid)
        if processes[holder] != nil || !watch(descriptor, holder, core) { close(descriptor) }
        guard processes[holder] != nil else { return nil }
        if processes[holder]?.uid == nil {
            processes[holder]?.uid = connection.peer.uid
            processCounts[connection.peer.uid, default: 0] += 1
        }
        processes[holder]?.connectionCount += 1
        return holder
    }

    /// Whether a process runs, as far as is known, and its end will be.
    fileprivate func isWatched(_ process: Holder) -> Bool { processes[process] != nil }

    /// A connection of a process has ended.
    fileprivate func leave(_ process: Holder, _ core: KeyspaceCore) {
        processes[process]?.connectionCount -= 1
        guard let known = processes[process], known.connectionCount == 0,
            core.entries.deadlines.holders.keyCount(of: process) == 0
        else { return }
        end(known, process, core)
    }

    /// Ends the processes that the descriptor reports.
    func takeEnded(_ core: KeyspaceCore) {
        poller.wait(nanoseconds: 0) { event in
            guard let holder = watched[Int32(truncatingIfNeeded: event.token)],
                let process = processes[holder]
            else { return }
            end(process, holder, core)
        }
    }

    private func end(_ process: Process, _ holder: Holder, _ core: KeyspaceCore) {
        poller.remove(process.descriptor)
        close(process.descriptor)
        watched[process.descriptor] = nil
        processes[holder] = nil
        if let uid = process.uid {
            let count = processCount(of: uid) - 1
            processCounts[uid] = count > 0 ? count : nil
        }
        core.endHolder(holder)
    }

    // MARK: Connections

    /// A number for a connection.
    fileprivate func makeHolder(
        _ owner: ConnectionHolders,
        _ uid: UInt32,
        _ core: KeyspaceCore
    ) -> Holder {
        while true {
            let holder = Holder(connectionOf: uid, tag: .random(in: 0...(.max)))
            guard !core.entries.deadlines.holders.knows(holder), core.admit(holder) else {
                continue
            }
            connections[holder] = .passUnretained(owner)
            return holder
        }
    }

    /// Takes the number of a connection, also of one that still lives.
    ///
    /// - Returns: False if there is none, or if it has ended.
    fileprivate func claim(
        _ holder: Holder,
        for owner: ConnectionHolders,
        _ core: KeyspaceCore
    ) -> Bool {
        guard core.entries.deadlines.holders.knows(holder), core.admit(holder) else {
            return false
        }
        connections[holder]?.takeUnretainedValue().connectionHolder = nil
        connections[holder] = .passUnretained(owner)
        return true
    }

    fileprivate func end(_ holder: Holder, _ core: KeyspaceCore) {
        connections[holder] = nil
        core.endHolder(holder)
    }

    private static func bootIdentity() -> FNV {
        var hash = FNV()
        for byte in BootIdentity.bytes() { hash.take(byte) }
        return hash
    }
}

/// A hash that is the same in the next run of the daemon (FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/).
private struct FNV {
    private var value: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func take(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

    func mixed(with number: Int64) -> UInt64 {
        var hash = self
        for shift in stride(from: Int64(0), to: 64, by: 8) {
            hash.take(UInt8(truncatingIfNeeded: number >> shift))
        }
        return hash.value ^ hash.value >> 32
    }
}

/// The holders of a connection's keys: itself and its process, from its first such key on.
///
/// Used only by the loop thread.
final class ConnectionHolders: WritersHolders {
    private unowned let connection: Connection
    let lifetimes: Lifetimes
    unowned let core: KeyspaceCore
    /// Nil before the first key, or if another connection has claimed its keys.
    var connectionHolder: Holder?
    private(set) var process: Holder?

    init(_ connection: Connection, _ lifetimes: Lifetimes, _ core: KeyspaceCore) {
        self.connection = connection
        self.lifetimes = lifetimes
        self.core = core
    }

    func holder(_ lifetime: Lifetime) throws(StateError) -> Holder {
        switch lifetime {
        case .connection: return connectionAsHolder()
        case .process:
            if process == nil { process = try lifetimes.process(of: connection, core) }
            // It may have ended while another one keeps its connection.
            if let process, lifetimes.isWatched(process) { return process }
            throw StateError(
                .err,
                "the daemon does not see process \(connection.peer.pid) of this client, which has "
                    + "ended or is in another PID namespace; use LIFETIME connection"
            )
        }
    }

    /// The connection itself.
    func connectionAsHolder() -> Holder {
        if let connectionHolder { return connectionHolder }
        let made = lifetimes.makeHolder(self, connection.peer.uid, core)
        connectionHolder = made
        return made
    }

    /// Takes over the keys of an earlier connection.
    ///
    /// - Returns: False if there are none any more.
    /// - Throws: ``StateError/Code/conflict`` if it has keys of its own already.
    func claim(_ holder: Holder) throws(StateError) -> Bool {
        if holder == connectionHolder { return true }
        if let own = connectionHolder {
            let count = core.entries.deadlines.holders.keyCount(of: own)
            guard count == 0 else {
                throw StateError(
                    .conflict,
                    "this connection has \(count) keys that live as long as it: use STATE.CLAIM "
                        + "before the first"
                )
            }
        }
        guard lifetimes.claim(holder, for: self, core) else { return false }
        if let own = connectionHolder { lifetimes.end(own, core) }
        connectionHolder = holder
        return true
    }

    /// The connection has ended.
    func end(_ core: KeyspaceCore) {
        guard !lifetimes.isStopping else { return }
        if let holder = connectionHolder { lifetimes.end(holder, core) }
        connectionHolder = nil
        if let process { lifetimes.leave(process, core) }
        process = nil
    }
}

extension Server {
    /// Processes have ended: their keys are deleted before later commands run.
    // Not inlined into the handling of events, which runs for each SET.
    @inline(never)
    func endProcesses() {
        keyspace.withCore { services.lifetimes.takeEnded($0) }
    }
}
