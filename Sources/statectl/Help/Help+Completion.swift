// The help of the verb that shells ask.
extension Help {
    static let complete = """
        Prints how the last WORD may go on: what the completion of bash, zsh and fish asks. The words
        are those after 'statectl', without quotes; the last may be empty. It offers verbs, options,
        keys by level, revisions and the names of handlers and locks: what the daemon shows to this
        user, in at most 100 ms. It prints nothing if there is no daemon, and always exits 0.

        The first character of each line says what the rest is:

          w  a whole word
          p  a prefix of keys, which ends in /
          f  (nothing follows) the shell offers the names of files
          c  (nothing follows) the shell offers commands

        examples:
          statectl complete -- get audio/
          statectl complete -- list --at ''

        """
}
