// Importers of StateTesting need the types that its declarations use.
@_exported public import StateStore
