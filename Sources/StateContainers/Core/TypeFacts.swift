import StateEngine
@_spi(Reflection) import Swift

/// What the library needs to know of the type of a value; found out once for each type.
///
/// The parts of a type are read from its metadata (`_forEachField`), not from a value: the nil of an
/// Optional and an empty array do not show what they could hold. Metadata says nothing of the
/// payloads of an enumeration, so one that owns memory may have anything in it.
struct TypeFacts: Sendable {
    /// Whether a value may own objects of the program's classes, directly or in closures, whose
    /// `deinit` can run any code.
    private(set) var mayOwnObjects = false
    /// Whether a part may be ``Validatable``.
    private(set) var mayHaveIssues = false
    /// Whether a value is a function, or an Optional or a tuple with one.
    ///
    /// A change of such a value wraps the function in two more, each time, even if the change leaves
    /// it as it is: https://github.com/swiftlang/swift/issues/91348. A call of it ends with a stack
    /// overflow after some 50,000 changes. In a struct it is left alone.
    private(set) var isBareFunction = false
    /// Says which property has a rule that nobody checks, because its type is not ``Validatable``;
    /// nil if there is none.
    private(set) var uncheckedRule: String?

    private static let known = StateLock<[ObjectIdentifier: TypeFacts]>([:])

    /// The facts of `type`.
    ///
    /// - Complexity: O(1) on average; the first time O(*n*) in the parts.
    static func of(_ type: Any.Type) -> TypeFacts {
        let id = ObjectIdentifier(type)
        if let facts = known.withLock({ $0[id] }) { return facts }
        var facts = TypeFacts()
        var seen: Set<ObjectIdentifier> = []
        facts.visit(type, kind(of: type), checksRules: true, &seen)
        facts.isBareFunction = isBareFunction(type, kind(of: type))
        known.withLock { $0[id] = facts }
        return facts
    }

    /// - Throws: ``StateError/Code/invalidRequest``, naming the property, if `type` has a rule that
    ///   nobody checks.
    static func checkRules(of type: Any.Type, for key: Key) throws(StateError) {
        guard let rule = of(type).uncheckedRule else { return }
        throw StateError(.invalidRequest, "key '\(key)': \(rule)")
    }

    /// Adds what is to be known of a part; `checksRules` says whether the type that the part belongs
    /// to checks the rules of its properties.
    private mutating func visit(
        _ type: Any.Type,
        _ kind: _MetadataKind,
        checksRules: Bool,
        _ seen: inout Set<ObjectIdentifier>
    ) {
        guard seen.insert(ObjectIdentifier(type)).inserted else { return }
        if let composed = type as? any ComposedType.Type {
            for part in composed.partTypes {
                visit(part, TypeFacts.kind(of: part), checksRules: checksRules, &seen)
            }
            return
        }
        let isValidatable = type is any Validatable.Type
        if isValidatable || kind == .enum && !isPlain(type) { mayHaveIssues = true }
        switch kind {
        // Its fields are its own business, such as Foundation's.
        case .struct where type is any CustomReflectable.Type:
            if !isPlain(type) { mayOwnObjects = true }
        case .struct, .tuple, .class:
            // A wrapper is a part of the type that it is used in.
            let checks = type is any ValidatedWrapper.Type ? checksRules : isValidatable
            let ownsByParts = visitFields(of: type, kind, checksRules: checks, &seen)
            if kind == .class || !ownsByParts && !isPlain(type) { mayOwnObjects = true }
        default:
            if !isPlain(type) { mayOwnObjects = true }
        }
    }

    /// - Returns: Whether a field is more than bits.
    private mutating func visitFields(
        of type: Any.Type,
        _ kind: _MetadataKind,
        checksRules: Bool,
        _ seen: inout Set<ObjectIdentifier>
    ) -> Bool {
        var ownsByParts = false
        // `.classType` is declared as a variable, which code that is checked for races cannot use.
        let options = _EachFieldOptions(rawValue: kind == .class ? 1 : 0)
        _ = _forEachField(of: type, options: options) {
            name,
            _,
            part,
            kind in
            if part is any ValidatedWrapper.Type, !checksRules, uncheckedRule == nil {
                // The storage of a wrapped property is named with a `_`.
                let property = String(cString: name).drop { $0 == "_" }
                uncheckedRule =
                    "'\(property)' of \(type) has a rule, '@\("\(part)".prefix { $0 != "<" })', which "
                    + "nobody checks: declare \(type) as Validatable"
            }
            if !isPlain(part) { ownsByParts = true }
            visit(part, kind, checksRules: checksRules, &seen)
            return true
        }
        return ownsByParts
    }

    private static func isBareFunction(_ type: Any.Type, _ kind: _MetadataKind) -> Bool {
        if let optional = type as? any ComposedType.Type, kind == .optional {
            return optional.partTypes.contains { isBareFunction($0, TypeFacts.kind(of: $0)) }
        }
        guard kind == .tuple else { return kind == .function }
        var holdsOne = false
        _ = _forEachField(of: type) { _, _, part, kind in
            holdsOne = isBareFunction(part, kind)
            return !holdsOne
        }
        return holdsOne
    }

    /// The kind of a type: that of the first field of a tuple, because the metadata of types of some
    /// kinds cannot be asked for fields.
    private static func kind(of type: Any.Type) -> _MetadataKind {
        func kind<Value>(_ type: Value.Type) -> _MetadataKind {
            var first = _MetadataKind.unknown
            _ = _forEachField(of: (Value, Bool).self) { _, _, _, kind in
                first = kind
                return false
            }
            return first
        }
        return _openExistential(type, do: kind)
    }
}

/// A type of the standard library that owns only values of other types.
private protocol ComposedType {
    static var partTypes: [Any.Type] { get }
}

extension Optional: ComposedType {
    fileprivate static var partTypes: [Any.Type] { [Wrapped.self] }
}
extension Array: ComposedType {
    fileprivate static var partTypes: [Any.Type] { [Element.self] }
}
extension ContiguousArray: ComposedType {
    fileprivate static var partTypes: [Any.Type] { [Element.self] }
}
extension ArraySlice: ComposedType {
    fileprivate static var partTypes: [Any.Type] { [Element.self] }
}
extension Set: ComposedType {
    fileprivate static var partTypes: [Any.Type] { [Element.self] }
}
extension Dictionary: ComposedType {
    fileprivate static var partTypes: [Any.Type] { [Key.self, Value.self] }
}
extension String: ComposedType {
    fileprivate static var partTypes: [Any.Type] { [] }
}
extension Substring: ComposedType {
    fileprivate static var partTypes: [Any.Type] { [] }
}
extension Character: ComposedType {
    fileprivate static var partTypes: [Any.Type] { [] }
}

/// Whether values of `type` are only bits.
private func isPlain(_ type: Any.Type) -> Bool {
    func isPlain<Value>(_ type: Value.Type) -> Bool { _isPOD(type) }
    return _openExistential(type, do: isPlain)
}
