import StateClient
import StateModel

extension Invocation {
    /// Whether a daemon that is not there yet is waited for.
    var waitsForDaemon: Bool { has("--for-daemon") }

    /// The first connection of a watch, which with `--for-daemon` waits until there is a daemon.
    ///
    /// - Throws: ``Failure/negative`` if the deadline passes first; ``Failure/refused(_:)``.
    func firstClient(until deadline: Deadline?, needsReader: Bool) throws(Failure) -> Client {
        var backOff = BackOff(first: .milliseconds(20), last: .seconds(1))
        var hasReported = false
        while true {
            do throws(StateError) {
                return try newClient(until: deadline)
            } catch {
                guard waitsForDaemon, error.code == .unreachable else {
                    throw ResumedWatch.end(with: error, deadline)
                }
                if !hasReported { Output.report("\(error.message); waiting for the daemon") }
                hasReported = true
            }
            let pause = backOff.next()
            guard try Pause.rest(pause, until: deadline, needsReader: needsReader) else {
                throw .negative
            }
        }
    }
}
