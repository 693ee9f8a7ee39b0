import StateEngine
import StateRules

extension Options {
    /// Takes what a configuration says.
    mutating func take(_ configuration: Configuration) {
        socket = configuration.socketPath ?? socket
        socketMode = configuration.socketMode ?? socketMode
        socketGroup = configuration.socketGroup?.number ?? socketGroup
        dataDirectory = configuration.dataDirectory ?? dataDirectory
        history.age = configuration.historyAge ?? history.age
        history.changeCount = configuration.historyChangeCount ?? history.changeCount
        history.byteCount = configuration.historyByteCount ?? history.byteCount
        rules = configuration.rules
        take(configuration.limits)
    }

    private mutating func take(_ limits: [String: Int64]) {
        func limit(_ name: String, _ standard: Int) -> Int {
            limits[name].map { Int($0) } ?? standard
        }
        self.limits.valueByteCount = limit("valueBytes", self.limits.valueByteCount)
        self.limits.queueByteCount = limit("queueBytes", self.limits.queueByteCount)
        self.limits.transactionByteCount = limit(
            "transactionBytes",
            self.limits.transactionByteCount
        )
        self.limits.fileCount = limit("files", self.limits.fileCount)
        clientCount = limit("clients", clientCount)
        watchCount = limit("watches", watchCount)
        stepCount = limit("steps", stepCount)
        globCount = limit("globs", globCount)
        outputByteCount = limit("outputBytes", outputByteCount)
        inputByteCount = limit("inputBytes", inputByteCount)
        replyByteCount = limit("replyBytes", replyByteCount)
        memoryByteCount = limit("memoryBytes", memoryByteCount)
        frameMilliseconds = limit("frameTimeout", frameMilliseconds)
        restMilliseconds = limit("rest", restMilliseconds)
        checkMilliseconds = limit("checkEvery", checkMilliseconds)
        reserveByteCount = limit("reserveBytes", reserveByteCount)
    }
}
