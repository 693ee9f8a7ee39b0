// The help of the verbs about several keys, and numbers.
extension Help {
    static let increment = """
        Adds N, by default 1, to the number that a key has, and prints the sum. An absent key counts
        as 0. N may be negative. If the value is not a whole number of 64 bits, it exits 2 and
        changes nothing.

        examples:
          statectl incr visits
          statectl incr stock/apples -3

        """

    static let transaction = """
        Makes the lines of a file one commit, or if FILE is - those of standard input: all of them
        happen, or none. Prints how many keys were set and deleted.

          set KEY = VALUE     as list prints it; \\n, \\t, \\xNN and \\\\ are decoded
          delete KEY          an absent key is no error
          check KEY REVISION  nothing happens unless that revision was the key's last change
          check KEY absent    nothing happens if the key is present

        Empty lines and lines that begin with # are skipped. If a check fails, it exits 4. If a line
        has another form, the message names its number, and it exits 2. A user without admin rights
        may change limits.steps keys.

        examples:
          printf 'set a = 1\\ndelete b\\ncheck c absent\\n' | statectl txn -

        """

    static let exists = """
        Exits 0 if each KEY is present and there are keys below each PREFIX/, else 1. Prints nothing;
        --json prints how many of them there are. KEY and PREFIX/ are literal.

        examples:
          statectl exists audio/volume && echo "there is a volume"
          statectl exists audio/ || echo "nothing is set"

        """

    static let copy = """
        Copies the value of a key, or of all keys below a prefix, in one commit, and prints how many.
        A value that expires does so when it would have; one that does not takes the time of the
        rule of its new name. A value that is there already is replaced; its history keeps it, so
        that revert brings it back. If KEY is absent, it says so and exits 1. Names are literal.

        \(copyOptions)

        examples:
          statectl cp audio/volume audio/volume-before
          statectl cp audio/ backup/audio/ --dry-run

        """

    static let move = """
        Gives a key, or all keys below a prefix, another name, in one commit, and prints how many.
        A value that expires does so when it would have; one that does not takes the time of the
        rule of its new name. A value that is there already is replaced. The old name has its
        history until it is compacted; that of the new one begins. If KEY is absent, it says so and
        exits 1. A key that somebody adds below PREFIX/ meanwhile may stay. Names are literal.

        \(copyOptions)

        examples:
          statectl mv audio/volume audio/master/volume
          statectl mv audio/ sound/ --if-absent

        """

    private static let copyOptions = """
          --if-absent  only if no key has one of the new names; otherwise it exits 4
          --dry-run    print what would change, as apply does, and change nothing; rules are checked
        """

    static let tree = """
        Prints keys and values as a tree: a prefix on its line, and what is below it further to the
        right.

          --depth N  only N levels

        examples:
          statectl tree
          statectl tree audio/ --depth 1

        """

    static let ping = """
        Prints PONG if the daemon answers; otherwise it exits 3.

        examples:
          statectl ping

        """
}
