import StateServer

extension ConfigurationFindings {
    /// Logs each with its line, once.
    func writeUnwritten(to log: Log) {
        if isWritten { return }
        isWritten = true
        for warning in warnings { log.write(.warning, warning.message, details: warning.details) }
        for error in errors { log.write(.error, error.message, details: error.details) }
        guard errors.count > 1 else { return }
        let isCut = errors.count >= ConfigurationFindings.limit
        log.write(.error, isCut ? "these are the first \(errors.count)" : "\(errors.count) errors")
    }
}
