import StateTestSupport
import Testing

extension Peer {
    /// Expects that a transcript is what happens.
    func expect(_ transcript: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let replayed = try replay(transcript)
        #expect(replayed == transcript, sourceLocation: sourceLocation)
    }
}
