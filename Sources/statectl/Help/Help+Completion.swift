// The help of the verbs that shells use, and of 'version'.
extension Help {
    static let completion = """
        Prints what the shell has to read so that it completes verbs, options and keys. Packages
        install it. Without one: 'source' it in ~/.bashrc, or in config.fish; for zsh, put it as
        _statectl into a directory of $fpath.

        examples:
          statectl completion bash > statectl.bash && source ./statectl.bash
          statectl completion zsh
          statectl completion fish

        """

    static let version = """
        Prints the version of this program. 'statectl status' prints that of the daemon.

        examples:
          statectl version

        """

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
