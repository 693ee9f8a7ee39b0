import CLinux
import Glibc
import StateEngine
import StateWire

/// The start of a process that continues connections of the last one.
extension Server {
    /// Continues the connections that the last process handed over.
    ///
    /// Called once, before clients are accepted. A connection that cannot be continued is closed.
    func takeOver() {
        guard !options.handedOver.isEmpty else { return }
        let unpacked = HandoverStream.unpack(options.handedOver)
        var closing = unpacked.others
        defer { for descriptor in closing { close(descriptor) } }
        guard let bytes = unpacked.record, let record = try? HandoverRecord(bytes) else {
            closing += unpacked.sockets.values
            if !closing.isEmpty { noteLost(closing.count, "their record cannot be read") }
            return
        }
        registry.continueNumbers(after: record.lastNumber)
        var count = 0
        for (number, descriptor) in unpacked.sockets.sorted(by: { $0.key < $1.key }) {
            guard number < record.sessions.count, let session = record.sessions[number] else {
                closing.append(descriptor)
                noteLost(1, "its record is damaged")
                continue
            }
            do throws(ContinuationError) {
                try resume(session, of: record, on: descriptor)
                count += 1
            } catch {
                noteLost(1, error.reason)
            }
        }
        let missing = record.sessions.count - unpacked.sockets.count
        if missing > 0 { noteLost(missing, "there were no descriptors for them") }
        finishTakingOver(record)
        // The first turn begins with waiting.
        flushes.drain(flush)
        options.log(
            .info,
            .connectionsContinued,
            "connections of the last process that go on: \(count)"
        )
    }

    private func noteLost(_ count: Int, _ reason: String) {
        services.gate.write(.init(subject: .handover), .warning) {
            ("connections of the last process that are closed: \(count), because \(reason)", [])
        }
    }

    /// Continues a connection, or closes it.
    private func resume(
        _ bytes: [UInt8],
        of record: HandoverRecord,
        on descriptor: Int32
    ) throws(ContinuationError) {
        var reader = RecordReader(bytes)
        guard isConnection(descriptor), let session = try? SessionRecord(&reader),
            session.number <= record.lastNumber, registry.all[session.number] == nil
        else {
            close(descriptor)
            throw ContinuationError(reason: "its record is damaged")
        }
        // What its client has handled are revisions of the other store, and no positions in this one.
        guard session.handlers.isEmpty || record.epoch == core.epoch else {
            close(descriptor)
            throw ContinuationError(reason: "its handlers are of another store")
        }
        let connection = Connection(
            descriptor: descriptor,
            number: session.number,
            limits: options.frameLimits,
            subjects: &registry.subjects,
            at: session.connectedAt
        )
        do throws(StateError) {
            try admit(connection)
        } catch {
            close(descriptor)
            throw ContinuationError(reason: error.message)
        }
        do throws(DamagedRecord) {
            try keyspace.withCore { (core) throws(DamagedRecord) in
                try Continuation(of: connection, record, services, dispatcher, core)
                    .restore(session)
            }
        } catch {
            end(connection)
            throw ContinuationError(reason: "its record is damaged")
        }
        goOn(with: connection)
    }

    /// Sends what was not sent, and runs what was not run.
    private func goOn(with connection: Connection) {
        count(connection)
        if !connection.outbound.bytes.isEmpty { flushes.add(connection) }
        if !connection.inbound.bytes.isEmpty { pause(connection, .turnIsOver) }
        if !connection.watches.all.isEmpty { scheduleProgress() }
    }

    /// If anything was committed since the last process ended, or other rules may be in force, what
    /// clients have copies of may be void.
    private func finishTakingOver(_ record: HandoverRecord) {
        keyspace.withCore { core in
            let isSame = record.epoch == core.epoch && record.durable == core.revisions.durable
            services.tracking.voidCopies {
                !isSame || core.restriction(of: $0.subject) != nil
            }
            services.tracking.evictAfterResuming()
        }
    }
}

/// Why a connection is not continued.
private struct ContinuationError: Error {
    var reason: String
}

/// Whether a descriptor is that of a connected Unix stream socket.
private func isConnection(_ descriptor: Int32) -> Bool {
    func option(_ name: Int32) -> Int32 {
        var value: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : -1
    }
    var peer = clinux_peer()
    return option(SO_DOMAIN) == AF_UNIX && option(SO_TYPE) == Int32(SOCK_STREAM.rawValue)
        && option(SO_ACCEPTCONN) == 0 && clinux_peer_credentials(descriptor, &peer) == 0
}
