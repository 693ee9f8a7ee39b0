/// How far the mirror of a cluster is, as metadata: it is stored with the changes themselves.
///
/// ```
/// name   handler:cluster
/// text   <prefix>
///        <history>    the cluster, as its link names it; empty before the first comparison
///        <revision>   the cluster's own; everything up to it is here
///        <stamp>      what the link must find in the same history
/// ```
package struct MirrorPosition {
    package static let metadataName = "handler:cluster"

    private let prefix: String
    package var history = ""
    package var revision: Int64 = 0
    package var stamp = ""

    /// Before the first comparison.
    package init(of prefix: MirroredPrefix) { self.prefix = prefix.text }

    /// - Returns: Nil if the text is of another prefix, or not one that this version writes.
    package init?(_ text: String?, of prefix: MirroredPrefix) {
        let newline = UInt8(ascii: "\n")
        let lines = text?.utf8.split(separator: newline, omittingEmptySubsequences: false) ?? []
        guard lines.count == 4, lines[0].elementsEqual(prefix.text.utf8),
            let number = Int64(Substring(lines[2]))
        else { return nil }
        self.prefix = prefix.text
        (history, revision) = (String(Substring(lines[1])), number)
        stamp = String(Substring(lines[3]))
    }

    package var text: String {
        var text = prefix
        for line in [history, String(revision), stamp] { text += "\n" + line }
        return text
    }
}

extension LocalKeyspace {
    /// From now on only the link of a cluster changes the keys with this prefix; nil: there is no
    /// cluster.
    ///
    /// Called before anything is written. The position of another prefix is forgotten: its keys may
    /// have been changed here since.
    ///
    /// - Throws: The error of storage.
    package func mirror(_ prefix: MirroredPrefix?) throws(StateError) {
        try durably { (core) throws(StateError) in
            core.admission.mirrored = prefix
            core.transaction.cluster = prefix.map { _ in ClusterUse() }
            var receipt = Receipt()
            let text = core.metadataText(MirrorPosition.metadataName, &receipt)
            guard text != nil, prefix.flatMap({ MirrorPosition(text, of: $0) }) == nil else {
                return
            }
            let cause = core.retainCause(.thisProcess)
            defer { core.release(cause) }
            core.begin(cause, at: LocalKeyspace.now())
            do throws(StateError) {
                try core.setMetadata(MirrorPosition.metadataName, to: nil)
            } catch {
                core.rollBack()
                throw error
            }
            core.finish(&receipt)
        }
    }
}
