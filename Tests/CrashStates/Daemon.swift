import CCrashRecorder
import Glibc

/// A daemon that the checker started, with or without a recorder.
final class Daemon {
    private let process: pid_t
    private let recorder: pid_t?
    private var isOver = false
    private(set) var status: Int32 = 0

    /// Starts it; a recorder writes its calls to `record`, if that is not nil.
    init(
        _ program: String,
        configuration: String,
        in directory: StateDirectory,
        record: String?
    ) throws(Failure) {
        unlink(directory.log)
        let words = [
            program, "--config", configuration, "--socket", directory.socket, "--data",
            directory.data,
        ]
        var arguments = words.map { strdup($0) }
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        guard let record else {
            process = recorder_start_plain(directory.log, arguments)
            recorder = nil
            return
        }
        var program: pid_t = 0
        let started = recorder_start(
            record,
            directory.root,
            directory.kept,
            directory.log,
            arguments,
            &program
        )
        guard started > 0 else { throw .ofCall("recorder_start") }
        (process, recorder) = (program, started)
    }

    deinit { end(SIGKILL) }

    /// Whether it runs.
    var isAlive: Bool {
        guard !isOver else { return false }
        let code = waitpid(recorder ?? process, &status, WNOHANG)
        isOver = code != 0
        return !isOver
    }

    /// Sends it a signal and waits for its end.
    func end(_ signal: Int32) {
        guard !isOver else { return }
        kill(process, signal)
        while waitpid(recorder ?? process, &status, 0) < 0, errno == EINTR {}
        isOver = true
    }
}
