// Who imports StateStore needs the words that its declarations are made of.
@_exported public import StateContainers
