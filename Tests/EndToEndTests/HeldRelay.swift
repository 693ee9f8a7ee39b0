import Glibc
import StateTestSupport

/// Passes connections on to a port, and holds back what was sent over those that are there.
final class HeldRelay {
    private let pid: pid_t
    let url: String

    /// - Throws: ``SystemFailure`` if it cannot be started.
    init(to target: UInt16) throws {
        let port = try EtcdMember.freePorts(1)[0]
        url = "http://127.0.0.1:\(port)"
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(null) }
        pid = try spawn(
            "python3",
            ["-c", HeldRelay.program, "\(port)", "\(target)"].map { Array($0.utf8) },
            [:],
            descriptors: [null, null, null]
        )
    }

    deinit {
        Glibc.kill(pid, SIGKILL)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
    }

    /// What comes over the connections that are there waits; new ones are not held.
    func hold() { Glibc.kill(pid, SIGUSR1) }

    /// What has waited goes on, also of connections that have ended meanwhile.
    func release() { Glibc.kill(pid, SIGUSR2) }

    private static let program = """
        import signal, socket, sys, threading
        gates = []
        signal.signal(signal.SIGUSR1, lambda *_: [gate.clear() for gate in gates])
        signal.signal(signal.SIGUSR2, lambda *_: [gate.set() for gate in gates])
        def pump(source, target, gate):
            while data := source.recv(65536):
                gate.wait()
                try: target.sendall(data)
                except OSError: pass
        listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        always = threading.Event()
        always.set()
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
            gates.append(threading.Event())
            gates[-1].set()
            for ends in (client, server, gates[-1]), (server, client, always):
                threading.Thread(target=pump, args=ends, daemon=True).start()
        """
}
