/// The help of the verbs that watch.
extension Help {
    static let watch = """
        Prints each change as it becomes durable: revision TAB set|delete TAB key TAB value, escaped
        as by list. If the daemon restarts, the watch reconnects and continues with the next change:
        it skips none and repeats none. If the daemon no longer keeps the next changes, a line
        'revision TAB gap' means: discard what was printed before; the current state follows.

          --from REV   begin with the changes after revision REV
          --snapshot   begin with the current state: a 'set' line for each key
          --latest     print only the latest of several changes to a key that came meanwhile
          --previous   also print the value that was replaced, as a fifth field
          --time       also print when the change arrived here, as the last field
          --count N    end after N changes
          --timeout T  end after a time such as 500ms, 10s or 2m; exits 1 if --count was not reached
          --for-daemon
                       if there is no daemon yet, wait for it
          --ready-fd N once the watch has begun, write a line to that descriptor and close it: all
                       changes after that are printed. With --json the first line of the output says
                       the same, {"revision":R,"op":"ready"}, where R is the revision of the store
          -- COMMAND…  run this for each change instead, one run at a time. Its environment has
                       STATED_KEY, STATED_OP (set, delete, snapshot, gap) and STATED_REVISION; its
                       standard input has the value (with --json the JSON object). It gets SIGTERM
                       if the watch ends while it runs
          --on-error skip|retry
                       if the command fails: skip reports it and continues (the default without
                       --name); retry runs it again until it succeeds, after 0.1 s, 0.2 s and so on
                       up to 30 s (the default with --name)
          --name N     a named handler: the daemon remembers the last revision that the command has
                       handled, and the next start with the same name and patterns continues there.
                       If this program is killed while the command runs, that one commit is handled
                       twice. --from and --snapshot apply to the first start only. --count ends it
                       after a complete commit
          --reset      begin the named handler anew, with these patterns

        If a handler falls behind the history that is kept, its command runs once with STATED_OP=gap
        and no key: discard what is known. Then it runs for each current key, with
        STATED_OP=snapshot.

        examples:
          statectl watch audio/
          statectl watch / --snapshot --timeout 1s
          mkfifo ready && { statectl watch jobs/ --timeout 1s --ready-fd 3 3>ready & read -r _ <ready; }
          statectl watch audio/volume -- sh -c 'echo "volume is $(cat)"'
          statectl watch dns/ --name dns-writer -- sh -c 'exec /usr/lib/dns/write-zone'
          statectl watch jobs/ --name jobs --from 0 --on-error skip -- sh -c './run-job'

        """

    static let wait = """
        Waits until the key is present, and exits 0; at once if it is already. Prints nothing (use
        'get' for the value); --json prints the change that ended the wait. The daemon may restart
        meanwhile. KEY is literal.

          --present    until the key is present, whatever its value (the default)
          --absent     until the key is absent
          --value V    until its value is V
          --timeout T  give up after a time such as 500ms, 10s or 2m, and exit 1; without it, waits
                       forever
          --for-daemon
                       if there is no daemon yet, wait for it

        examples:
          statectl wait boot/network && statectl get boot/network
          statectl wait jobs/7/lock --absent --timeout 10s || echo "still locked"
          statectl wait boot/stage --value done --timeout 2m

        """

    static let handlers = """
        Prints a line for each named handler: its name, uid, the last revision that it has handled,
        how many revisions it is behind, the pid of the process that runs it, when it handled that
        revision, and its patterns.

          --forget N  remove a handler of this user that is not running; exits 1 if there is none

        examples:
          statectl handlers
          statectl handlers --json
          statectl handlers --forget dns-writer

        """
}
