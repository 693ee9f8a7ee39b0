/// The help of the verbs that look back, go back, and forget.
extension Help {
    static let history = """
        Prints the changes of a key that the daemon still keeps, newest first: revision TAB set|delete TAB time
        TAB value, escaped as by list. A key of which nothing is known exits 1. KEY is literal.

          --limit N  only the newest N

        examples:
          statectl history audio/volume
          statectl history audio/volume --limit 1

        """

    static let blame = """
        Prints who made each change of a key, newest first: revision TAB set|delete TAB local time TAB user TAB
        pid TAB command TAB name. The user is what the kernel said; pid, command and the name that the client
        gave itself are hints. KEY is literal.

          --limit N  only the newest N

        examples:
          statectl blame audio/volume
          statectl blame audio/volume --limit 1 --json

        """

    static let diff = """
        Prints the keys that are not the same at two revisions, in key order, escaped as by list:

          - key = value   what it was at REV1
          + key = value   what it was at REV2, or is now

        --json prints "revision", the last change of the key, "op", "value" and "previous". What it costs
        follows the changes between the two, not the keys that there are.

        examples:
          statectl diff 1
          statectl diff 1 2 audio/

        """

    static let revert = """
        Brings the keys that PATTERN means back to what they were at a revision, in one commit, and prints how
        many changed. It is a change like any other: watches see it, and to revert to the revision before it
        brings back what was there.

          --to REV   the revision; one that the daemon keeps no more exits 5
          --dry-run  print what would change, as diff does, and change nothing
          --all      revert everything

        examples:
          statectl revert audio/volume --to 1
          statectl revert audio/ --to 1 --dry-run
          statectl revert --all --to 1

        """

    static let compact = """
        Takes changes that others superseded out of the history, so that the store becomes smaller; what is live
        stays. Without --to it does at once what the daemon does by itself when it is idle: it goes as far as the
        retention says (see 'stated --help'). Prints from which revision on the history is whole, and ends when it
        is done; commits go on meanwhile.

          --to REV  keep the history from revision REV on only: earlier revisions are gone for good, for watches
                    that would resume, 'get --at' and 'revert' too. Where they are gone already nothing is done.
          --shrink  afterwards give the free room back to the file system. Else later changes use it. It rewrites
                    the database: writes wait for the end, some seconds for each GB, and it needs twice the room
                    of the live values meanwhile.

        Exits 5 where there is no room to shrink, 2 for a revision that is not reached yet.

        examples:
          statectl compact
          statectl compact --to 1 --shrink
          statectl status

        """
}
