public import Observation
public import StateEngine

/// A query whose rows are in sections: declared once, run on any keyspace.
///
/// ```swift
/// static let byYear = StateQuery("budget/", as: Budget.self).sectioned(by: \.year, .reverse)
/// let budgets = try keyspace.query(Budget.byYear)
/// for section in budgets.sections { print(section.id, section.rows.count) }
/// ```
public struct SectionedQuery<
    Value: Codable & Sendable,
    Section: Comparable & Hashable & Sendable
>: Sendable {
    let rows: StateQuery<Value>
    let field: any KeyPath<Value, Section> & Sendable
}

/// The rows of a query whose field is equal.
public struct QuerySection<Value: Sendable, Section: Hashable & Sendable>: Sendable, Identifiable {
    /// The field.
    public let id: Section
    /// The rows, in the order of the query; never empty.
    public let rows: QueryRows<Value>
}

/// The current results of a sectioned query; see ``LiveQuery``.
public final class LiveSections<
    Value: Codable & Sendable,
    Section: Comparable & Hashable & Sendable
>: Observable, Sendable {
    /// The rows of all sections.
    public let query: LiveQuery<Value>
    private let field: any KeyPath<Value, Section> & Sendable

    /// Runs `query` on `keyspace`; blocks until the rows are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    public init(
        _ query: SectionedQuery<Value, Section>,
        in keyspace: any Keyspace
    ) throws(StateError) {
        self.query = try LiveQuery(query.rows, in: keyspace)
        field = query.field
    }

    /// Runs `query` on `keyspace`; returns when the rows are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    public nonisolated(nonsending) init(
        _ query: SectionedQuery<Value, Section>,
        in keyspace: any Keyspace
    ) async throws(StateError) {
        self.query = try await LiveQuery(query.rows, in: keyspace)
        field = query.field
    }

    /// The current sections, in order; only those that have rows.
    ///
    /// - Complexity: O(*k* log *n*) for *k* sections of *n* rows.
    public var sections: [QuerySection<Value, Section>] { Self.sections(of: query.rows, by: field) }

    /// Calls `body` with the sections when the rows change, until the returned observation is
    /// released, which keeps the query running.
    ///
    /// - Parameters:
    ///   - initial: Whether `body` first gets the current sections.
    ///   - file: The caller's file, which traces show.
    ///   - line: The caller's line, which traces show.
    ///   - body: Receives the sections; as that of
    ///     ``LiveQuery/observe(initial:file:line:_:)``, on the actor that it is isolated to.
    /// - Returns: The observation; releasing it ends the calls.
    public func observe(
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        @_inheritActorContext _ body:
            @escaping @isolated(any) @Sendable (
                [QuerySection<Value, Section>]
            ) -> Void
    ) -> StateObservation {
        query.feed.catchUp()
        let observation = query.feed.rows.observe(
            seeing: { [field] in Self.sections(of: $0.new, by: field) },
            initial: initial,
            who: "\(file):\(line)",
            body
        )
        return observation.retaining(query.feed)
    }

    /// Calls `body` on `queue` with the sections when the rows change, until the returned observation
    /// is released, which keeps the query running.
    ///
    /// - Parameters:
    ///   - queue: Where `body` runs; see ``LiveQuery/observe(on:initial:file:line:_:)`` on
    ///     ``StateQueue/inline``.
    ///   - initial: Whether `body` first gets the current sections.
    ///   - file: The caller's file, which traces show.
    ///   - line: The caller's line, which traces show.
    ///   - body: Receives the sections.
    /// - Returns: The observation; releasing it ends the calls.
    public func observe(
        on queue: StateQueue,
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        _ body: @escaping @Sendable ([QuerySection<Value, Section>]) -> Void
    ) -> StateObservation {
        query.observe(on: queue, initial: initial, file: file, line: line) { [field] change in
            body(Self.sections(of: change.new, by: field))
        }
    }

    private static func sections(
        of rows: QueryRows<Value>,
        by field: any KeyPath<Value, Section> & Sendable
    ) -> [QuerySection<Value, Section>] {
        var sections: [QuerySection<Value, Section>] = []
        var start = 0
        while start < rows.count {
            let id = rows[start].value[keyPath: field]
            let rest = rows.window(offset: start, limit: .max)
            let length = rest.prefixCount { $0.value[keyPath: field] == id }
            let section = rest.window(offset: 0, limit: Swift.max(1, length))
            sections.append(QuerySection(id: id, rows: section))
            start += section.count
        }
        return sections
    }
}

extension Keyspace {
    /// Runs a sectioned query and keeps its sections current; blocks until they are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    public func query<Value, Section>(
        _ query: SectionedQuery<Value, Section>
    ) throws(StateError) -> LiveSections<Value, Section> {
        try LiveSections(query, in: self)
    }

    /// Runs a sectioned query and keeps its sections current; returns when they are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    public nonisolated(nonsending) func query<Value, Section>(
        _ query: SectionedQuery<Value, Section>
    ) async throws(StateError) -> LiveSections<Value, Section> {
        try await LiveSections(query, in: self)
    }
}
