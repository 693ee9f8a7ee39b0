/// The help of the verbs that look back, go back, and forget.
extension Help {
    static let history = """
        Prints the changes of a key that the daemon still keeps, newest first: revision TAB
        set|delete TAB time TAB value, escaped as by list. Exits 1 if nothing is known of the key.
        KEY is literal.

          --limit N         only the newest N
          --since REV|TIME  only those from that revision, or that time, on

        examples:
          statectl history audio/volume
          statectl history audio/volume --since yesterday
          statectl history audio/volume --limit 1

        """

    static let blame = """
        Prints who made each change of a key, newest first: revision TAB set|delete TAB local
        time TAB user TAB pid TAB command TAB name. The kernel reports the user; pid, command and
        the name that the client gave itself are only hints. KEY is literal.

          --limit N         only the newest N
          --since REV|TIME  only those from that revision, or that time, on

        examples:
          statectl blame audio/volume
          statectl blame audio/volume --limit 1 --json

        """

    static let diff = """
        Prints the keys that differ between two revisions, in key order, escaped as by list:

          - key = value   the value at REV1
          + key = value   the value at REV2, or now

        --json prints "revision" (the last change of the key), "op", "value" and "previous". The
        cost depends on the number of changes between the two revisions, not on the number of keys.

        A time is one of these; of it, the newest revision at that time is taken:

          now, today, yesterday            the last two are midnight
          '10 minutes ago', '1h30m ago'    or -10m
          07:30, '2026-11-25 07:30:15'     local time; 2026-11-25T06:30:15Z is UTC
          2026-11-25T07:30:15.123+01:00    as history prints it
          @1700000000                      seconds since 1970

          --defaults  the keys that were set to something else than their default, with - for it

        examples:
          statectl diff 1
          statectl diff --defaults audio/
          statectl diff 1 2 audio/
          statectl diff today now

        """

    static let revert = """
        Restores the keys that match PATTERN to their state at a revision, in one commit, and
        prints how many changed. It is a change like any other: watches see it, and you can undo it
        by reverting to the revision before it.

          --to REV|TIME  the revision, or a time as 'diff --help' lists them; exits 5 if the daemon
                         no longer keeps it
          --dry-run  print what would change, as diff does, and change nothing; rules are checked
          --all      revert everything

        examples:
          statectl revert audio/volume --to 1
          statectl revert audio/ --to 1 --dry-run
          statectl revert --all --to 1

        """

    static let sync = """
        Waits until everything that anybody has set so far is on stable storage, and prints the
        revision. Only keys whose rule has durability: "interval" are not anyway once their set has
        ended. If there are keys of a cluster, it also waits until everything that the cluster had
        is here; cut off from it, it exits 4.

          --local  do not wait for a cluster

        examples:
          statectl set sensor/temperature 21.5 && statectl sync

        """

    static let compact = """
        Removes superseded changes from the history, so that the store becomes smaller. Current
        values stay. Without --to it does at once what the daemon does each time that it settles
        its log: it removes what the retention limits allow (see 'stated --help'), and all that
        rules do not keep. It ends when it is done, and prints the revision from which the history
        is complete. Commits continue meanwhile.

          --to REV|TIME  keep only the history from there on: a revision, a time such as '2 hours ago' or
                    '2026-11-25 07:30', or now. Earlier revisions are gone for good, also for
                    watches that resume, 'get --at' and 'revert'. If they are gone already, nothing
                    is done.
          --shrink  then settle the log and return free space of the database to the file system.
                    Otherwise later changes reuse it. Writes wait until it ends.

        Exits 5 if the log cannot be settled, 2 if the revision is not reached yet.

        examples:
          statectl compact
          statectl compact --to '2 hours ago'
          statectl compact --to now --shrink
          statectl status

        """
}
