// Importers of StateContainers need the types that its declarations use.
@_exported public import StateEngine
@_exported public import StateJSON
