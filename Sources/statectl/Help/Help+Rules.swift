// The help of the verbs that are about the configuration and what it refuses.
extension Help {
    static let check = """
        Lists the stored values that a rule of the daemon's configuration now refuses. A new rule
        does not change stored values. A line is 'revision TAB key TAB issue', or
        '- TAB path TAB issue' for a file that a file rule does not accept. Exits 4 if anything is
        listed.

        With --store it checks the store on disk instead: SQLite's own check, the checksum and the
        order of each row, each frame of the log, and that both fit. It changes nothing, and the
        daemon may run meanwhile. It prints at most 100 problems and a summary, and exits 5 if there
        is a problem. It runs 'stated --check': the stated beside this program, else that in PATH.

          --store           the store of this user's daemon
          --data DIRECTORY  the store in that directory

        examples:
          statectl check
          statectl check audio/ --json
          statectl check --data "$STATE_DIRECTORY"
          statectl check --store || echo "see 'stated --salvage' in 'stated --help'"

        """

    static let reload = """
        Makes the daemon reload its configuration, and prints each change on a line:

          limits.valueBytes: 8MiB → 1MiB
          rule 2 (audio/) readonly: none → true
          socket.mode: 0600 → 0660 (needs a restart)
          in force from revision 12 on

        Either all of it takes effect at once, from that revision on, or nothing does. If the file
        has an error, the message names the place in it, the exit code is 2, and the daemon keeps
        its configuration. SIGHUP also reloads; the result is then in the log. Options on the
        daemon's command line override the file, as at its start.

          --dry-run         change nothing; print what 'check-config' prints

        examples:
          statectl reload
          statectl reload --dry-run
          statectl reload --json

        """

    static let checkConfig = """
        Makes the daemon read its configuration without using it, and prints what a reload would do:
        all errors with their lines, warnings, each option that would change, each that needs a
        restart, and the stored values that the new rules would refuse (at most 100 of them), a
        line 'revision TAB key TAB issue' each. It needs admin rights. Exits 2 if there are errors.
        'stated --check-config FILE' checks a file without a daemon.

        examples:
          statectl check-config
          statectl check-config --json

        """

    static let explain = """
        Prints each option that applies to the key, whether or not the key is present: its value in
        JSON, and the number, keys and line of the rule that sets it, or 'default'. Of the rules that
        match and set an option, the most specific one applies: first a rule for the key, then one
        for a prefix, then one for a glob; of two of a kind, the longer one.

        examples:
          statectl explain audio/volume
          statectl explain audio/volume --json

        """

    static let rules = """
        Prints the rules of the daemon's configuration: number, line, keys, and options in JSON. A
        rule with several patterns has a line for each.

        examples:
          statectl rules
          statectl rules --json

        """

    static let edit = """
        Opens the value in $VISUAL, else $EDITOR, else vi. When you save and quit, the new text is
        set if nobody else changed the key meanwhile. The text of an absent key is empty. If the
        value does not end in a newline, one is added for the editor and removed again.

        If the text is unchanged or the editor fails, nothing is set. If a rule refuses the text,
        you can edit it again. Your text is never lost: if it cannot be set, the message names the
        file that has it; after a refusal or a conflict the exit code is 4. A value that is not
        text is refused with exit code 2; use 'get --raw' and 'set KEY -' for it.

        examples:
          statectl edit audio/volume
          EDITOR='sed -i s/0.7/0.8/' statectl edit audio/volume

        """
}
