// The help of the verbs that make backups.
extension Help {
    static let backup = """
        Stores everything that the daemon has at one revision in a file: keys, values, owners, times
        at which keys expire, revisions, the history, and the positions of named handlers. Others
        read and write meanwhile. 'stated --restore FILE --data NEWDIRECTORY' makes a store of it.
        Keys of rules with backing: "memory" are not in it. You need admin rights and the right to
        read all keys.

        The new file is written beside FILE, synced and then renamed, so that FILE is always a whole
        backup; only you can read it. If FILE is a device, a pipe or a link, it is written to. While
        a backup is made, the log is not settled, and the history is not compacted.

          --no-history  only the present values and deletes, without history and handlers
          --since FILE  only the changes since that backup; to restore, name both. It fails if the
                        history does not reach back to it
          --verify      check a file instead: each piece, their order, and the whole; exits 5 and
                        names the piece if one is damaged

        examples:
          statectl backup monday.backup
          statectl backup - --no-history | gzip > state.backup.gz
          statectl backup tuesday.backup --since monday.backup
          statectl backup --verify monday.backup

        """
}
