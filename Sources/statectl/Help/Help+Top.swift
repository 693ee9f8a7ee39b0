/// The help of `top`.
extension Help {
    static let top = """
        Shows what the daemon does, live: commits, changes, bytes and commands a second, and how long
        it takes until a change is on stable storage, each with its course; the busiest keys; who
        changes them (process, user, command, and the name that the client gave itself); and the
        watches, those that lag most first. q and Ctrl-C end it, Ctrl-Z stops it. It needs admin rights.

        The daemon counts keys and writers only while somebody looks; that costs it about as much as
        one more watch. If there are more than 2,000, those that changed least lately are forgotten. Their
        rates are a mean of the last seconds, in which a change weighs half as much for each second.

          --interval T  how long between two looks, from 100ms to 10s; by default 1s
          --once        look for one interval, print it, and end; with --json as an object

        examples:
          statectl top --once
          statectl top --once --json --interval 100ms

        """
}
