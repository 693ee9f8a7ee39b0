/// The help of the verbs that watch.
extension Help {
    static let watch = """
        Prints each change as it becomes durable: revision TAB set|delete TAB key TAB value, escaped as by
        list. When the daemon restarts it connects again and goes on with the next change: none is left out and
        none comes twice. Where changes are no longer to be had a line 'revision TAB gap' says that what was
        printed is void, and the state follows.

          --from REV   first the changes after revision REV
          --snapshot   first the state: a 'set' line for each key
          --latest     only the last of the changes to a key that came while this was busy
          --previous   also the value that was replaced, as a fifth field
          --count N    end after N changes
          --timeout T  end after a time such as 500ms, 10s or 2m; exits 1 where --count was not reached
          -- COMMAND…  run this for each change instead, one after the other, with STATED_KEY,
                       STATED_OP (set, delete, snapshot, gap) and STATED_REVISION in its environment and
                       the value on its standard input (with --json the object)
          --on-error skip|retry
                       a command that fails is reported and passed over (without --name), or run again until
                       it succeeds, after 0.1 s, 0.2 s and so on up to 30 s (with --name); a watch that ends
                       while its command runs sends it SIGTERM
          --name N     a named handler: the daemon remembers the last revision that the command has handled,
                       and the next start goes on there, with the same patterns. Only the commit whose command
                       was under way when this was killed is handled twice. --from and --snapshot say where
                       it begins the first time, and --count ends it behind a whole commit
          --reset      begin it anew, with these patterns

        A handler that falls behind the history is run once with STATED_OP=gap and no key: what it knows is
        void. It is then run for each key that is there, with STATED_OP=snapshot.

        examples:
          statectl watch audio/
          statectl watch / --snapshot --timeout 1s
          statectl watch audio/volume -- sh -c 'echo "volume is $(cat)"'
          statectl watch dns/ --name dns-writer -- /usr/lib/dns/write-zone
          statectl watch jobs/ --name jobs --from 0 --on-error skip -- ./run-job

        """

    static let wait = """
        Waits until the key is there, and exits 0 at once where it is. Prints nothing ('get' tells the value);
        --json prints the change that it waited for. The daemon may restart meanwhile. KEY is literal.

          --present    until it is there, whatever its value (what is waited for where nothing is said)
          --absent     until it is not there
          --value V    until its value is V
          --timeout T  give up after a time such as 500ms, 10s or 2m, and exit 1; else it waits for ever

        examples:
          statectl wait boot/network && statectl get boot/network
          statectl wait jobs/7/lock --absent --timeout 10s || echo "still locked"
          statectl wait boot/stage --value done --timeout 2m

        """

    static let handlers = """
        Prints a line for each named handler: its name, uid, the last revision that it has handled, how many
        revisions it is behind, the process that runs it, when it came so far, and its patterns.

          --forget N  forget a handler of this user that nobody runs; exits 1 where there is none

        examples:
          statectl handlers
          statectl handlers --json
          statectl handlers --forget dns-writer

        """
}
