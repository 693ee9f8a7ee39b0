// The help of the verbs that run a command while something holds.
extension Help {
    static let lock = """
        Runs COMMAND while this has the lock NAME, and ends with its exit code. If others have the
        lock or wait for it, it waits its turn, in the order of arrival, also over a restart of the
        daemon. The lock is free again when the process of COMMAND ends, however it ends; what that
        has started and left running is not waited for.

        COMMAND has three variables: STATED_LOCK is NAME, STATED_LOCK_ID is the last part of its
        key, and STATED_LOCK_TOKEN is its token, the revision of that key. Later holders have
        larger tokens, so that what the lock protects can refuse a smaller one than it has seen.
        A transaction with 'check locks/NAME/ID TOKEN' (see 'statectl txn --help') changes nothing
        once the lock is lost.

        If the lock is lost, because somebody deleted its key or the daemon keeps everything in
        memory and was restarted, COMMAND gets SIGTERM, and SIGKILL 10 s later.

          --wait TIME  how long to wait, such as 500ms or 30s; then it exits 1. 0 does not wait;
                       without this, it waits as long as it takes
          --shared     share the lock with others that share it; without this, nobody else has it

        A lock is a key locks/NAME/ID for each who has it or waits: its rules are those of these
        keys.

        examples:
          statectl lock backup -- sleep 1
          statectl lock backup --wait 0 -- sh -c 'echo "token $STATED_LOCK_TOKEN"'
          statectl lock report --shared --wait 30s -- date

        """

    static let locks = """
        Prints a line for each who has a lock or waits for it, in the order in which they get it.

        examples:
          statectl locks
          statectl locks backup --json

        """

    static let elect = """
        Waits until this is the leader of KEY, sets KEY, and runs COMMAND. The key is deleted when
        the process of COMMAND ends; then the next that waits is the leader, in the order of
        arrival. It is the lock of that name (see 'statectl lock --help'), so COMMAND has
        STATED_LOCK, STATED_LOCK_ID and STATED_LOCK_TOKEN, and is stopped if it loses the lock.
        Others see the leader with get and watch.

          --value V    the value of KEY, such as an address; without this, the number of the process
          --wait TIME  how long to wait, such as 30s; then it exits 1

        examples:
          statectl elect cluster/leader --value node1 -- echo "I lead"

        """

    static let service = """
        Sets KEY to VALUE while COMMAND runs: the key is deleted when the process of COMMAND ends,
        however it ends. If a daemon that keeps the key in memory restarts, it is set again. Ends
        with the exit code of COMMAND, which has KEY in STATED_KEY.

          --if-absent  only if the key is absent; otherwise it exits 4

        examples:
          statectl service services/web 127.0.0.1:8080 -- sleep 1

        """
}
