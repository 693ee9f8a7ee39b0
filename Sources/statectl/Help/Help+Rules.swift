// The help of the verbs that are about the configuration and what it refuses.
extension Help {
    static let check = """
        Lists the stored values that a rule of the daemon's configuration refuses now: a new rule leaves what is
        stored as it is. A line is 'revision TAB key TAB issue'; of a file that a container does not take,
        '- TAB path TAB issue'. Exits 4 where anything is listed.

        With --store it checks the store on disk instead and changes nothing, also while the daemon runs: SQLite's
        own check, the checksum and the order of each row, and the chain of each key's changes. It prints what is
        wrong, 100 lines at most, and a summary; exits 5 where anything is. It runs 'stated --check', the one
        beside this program or else the one in PATH.

          --store           the store of this user's daemon
          --data DIRECTORY  the store in that directory

        examples:
          statectl check
          statectl check audio/ --json
          statectl check --data "$STATE_DIRECTORY"
          statectl check --store || echo "see 'stated --salvage' in 'stated --help'"

        """

    static let reload = """
        Has the daemon read its configuration again and prints what has changed, a line each:

          limits.valueBytes: 8MiB → 1MiB
          rule 2 (audio/) readonly: none → true
          socket.mode: 0600 → 0660 (needs a restart)
          in force from revision 12 on

        All of it takes effect at one moment, from that revision on, or nothing does: a file that cannot be used
        is named with the place in it, exits 2, and everything is as it was. SIGHUP does the same and tells the
        log. Options of the daemon's command line count more than the file, as at its start.

        examples:
          statectl reload
          statectl reload --json

        """

    static let explain = """
        Prints each option that holds for the key, present or not: its value in JSON, and the rule that says it with
        its number and its keys, or 'default'. Of the rules that match, the most specific one that names an
        option counts: one for the key over one for a prefix over one for a glob, then the longer one.

        examples:
          statectl explain audio/volume
          statectl explain audio/volume --json

        """

    static let rules = """
        Prints the rules of the daemon's configuration: number, keys, and options in JSON.

        examples:
          statectl rules
          statectl rules --json

        """

    static let edit = """
        Opens the value in $VISUAL, else $EDITOR, else vi, and sets what was saved if nobody else changed the
        key meanwhile. An absent key begins empty. A final newline that the value does not have is added for the
        editor and taken away again.

        An unchanged text changes nothing. Where an editor fails nothing is set. What a rule refuses can be edited
        again. What was written is never lost: where it is not set, its file is named; that exits 4 after a
        refusal or a conflict. A value that is no text is refused with 2: get --raw and set - move it.

        examples:
          statectl edit audio/volume
          EDITOR='sed -i s/0.7/0.8/' statectl edit audio/volume

        """
}
