import CLinux
import StateClient

/// `top` on a terminal, which has keys and signals also while the daemon does not answer.
final class TopView {
    private let client: Client
    private let terminal: Terminal
    private var screen = TopScreen()
    private var isEnding = false

    /// Takes the terminal.
    init(_ client: Client) throws(Failure) {
        self.client = client
        terminal = try Terminal()
    }

    /// Shows what happens after `first`, every so many milliseconds, until somebody ends it.
    func run(after first: TopSample, every milliseconds: Int64) throws(Failure) {
        defer { terminal.end() }
        client.interruption = .condition(terminal.events) { [unowned self] in takeEvent() }
        defer { client.interruption = nil }
        var last = first
        var next = clinux_monotonic_nanoseconds() + 200_000_000
        while !isEnding {
            guard !terminal.wait(until: next) else {
                _ = takeEvent()
                continue
            }
            guard let sample = try sample() else { return }
            screen.add(TopRates(from: last, to: sample))
            last = sample
            next = clinux_monotonic_nanoseconds() + milliseconds * 1_000_000
            try show()
        }
    }

    /// What the daemon says of itself; nil if somebody ended the program meanwhile.
    private func sample() throws(Failure) -> TopSample? {
        do throws(Failure) { return try attempt(try TopSample(client)) } catch {
            if isEnding { return nil }
            throw error
        }
    }

    /// Takes what happened on the terminal; returns whether the program ends.
    private func takeEvent() -> Bool {
        switch terminal.event() {
        case .quit: isEnding = true
        case .changed: isEnding = (try? show()) == nil
        case nil: break
        }
        return isEnding
    }

    private func show() throws(Failure) {
        let (columns, rows) = Terminal.size
        try terminal.show(screen.lines(columns: columns, rows: rows))
    }
}
