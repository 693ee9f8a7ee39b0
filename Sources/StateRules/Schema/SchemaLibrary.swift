package import StateEngine
package import StateJSON

/// The schemas that the rules of one configuration share: those in files beside it.
///
/// Used by one thread, while the configuration is read.
package final class SchemaLibrary {
    /// Finds the document at an address, such as `schemas/lease.json5`; nil if there is none.
    package typealias Source = (_ address: String) -> Result<JSON5Document, StateError>?

    /// A JSON text with schemas.
    struct Document {
        let value: JSONValue
        /// The path of `value`, with which all paths in the document begin.
        let root: JSONPath
        /// What references in it are relative to, where no `$id` says otherwise.
        let address: String
        /// The file, and the `$ref` of the configuration that led to it; nil for a rule.
        let file: (name: String, text: JSON5Document, origin: JSONPath)?

        /// The value at a path; nil if there is none.
        func value(at path: JSONPath) -> JSONValue? {
            path.steps.dropFirst(root.steps.count).reduce(value) { value, step in
                switch (value, step) {
                case (.object(let members)?, .member(let name)): members[name]
                case (.array(let elements)?, .element(let index)):
                    elements.indices.contains(index) ? elements[index] : nil
                default: nil
                }
            }
        }

        /// The faults of the document, at a place of the configuration.
        func located(_ fault: OptionFault) -> OptionFault {
            guard let file else { return fault }
            let faults = fault.all.map { fault in
                let place = file.text.place(of: fault.path).map { ":\($0)" } ?? ""
                return OptionFault(file.origin, "\(file.name)\(place): \(fault)")
            }
            return OptionFault(faults) ?? fault
        }
    }

    /// A place in a document.
    struct Place: Hashable {
        let document: Int
        let path: JSONPath
    }

    /// What addresses name, with the base address of each schema that has its own.
    struct Names {
        var places: [String: Place] = [:]
        var bases: [Place: String] = [:]
    }

    /// The base address of the configuration; nobody can fetch it.
    static let root = "file:///"

    private let source: Source
    let table = SchemaTable()
    private(set) var documents: [Document] = []
    /// Of all files that were read.
    var names = Names()
    /// The index in the table for each place of a file.
    var targets: [Place: Int] = [:]

    /// - Parameter source: Finds files; without it there are none.
    package init(_ source: @escaping Source = { _ in nil }) {
        self.source = source
    }

    func add(_ document: Document) -> Int {
        documents.append(document)
        return documents.count - 1
    }

    /// Reads a file.
    ///
    /// - Parameters:
    ///   - address: An absolute address without fragment.
    ///   - origin: The `$ref` of the configuration that needs it.
    /// - Returns: The index of the document; nil if there is no such file.
    /// - Throws: ``OptionFault`` at `origin`, if it cannot be used.
    func read(_ address: String, for origin: JSONPath) throws(OptionFault) -> Int? {
        let isLocal = address.hasPrefix(SchemaLibrary.root)
        let name = isLocal ? String(address.dropFirst(SchemaLibrary.root.count)) : address
        guard let found = source(name) else { return nil }
        let text: JSON5Document
        do throws(StateError) { text = try found.get() } catch {
            throw OptionFault(origin, error.message)
        }
        let document = Document(
            value: text.value,
            root: JSONPath(),
            address: address,
            file: (name: name, text: text, origin: origin)
        )
        if let fault = text.faults.first { throw OptionFault(origin, "\(name):\(fault)") }
        return add(document)
    }
}
