import StateServer

extension ConfigurationFindings {
    /// Logs each with its line, once.
    func writeUnwritten(to log: Log) {
        if isWritten { return }
        isWritten = true
        for warning in warnings { log.write(warning.message(.warning, .configurationWarning)) }
        for error in errors { log.write(error.message(.error, .configurationError)) }
        guard errors.count > 1 else { return }
        let isCut = errors.count >= ConfigurationFindings.limit
        log.write(
            .error,
            .configurationError,
            isCut ? "these are the first \(errors.count)" : "\(errors.count) errors"
        )
    }
}

extension ConfigurationFindings.Finding {
    fileprivate func message(_ level: LogLevel, _ event: LogEvent) -> LogMessage {
        var message = LogMessage(level, event, message)
        message.details = details
        return message
    }
}
