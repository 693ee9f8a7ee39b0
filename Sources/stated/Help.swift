/// What `stated --help` prints.
let helpText = """
    stated keeps values that outlive the programs that set them, and serves them on a Unix socket.

    Usage: stated [--socket PATH] [--data DIRECTORY | --memory] [--socket-mode MODE]
           stated --check [--data DIRECTORY]
           stated --salvage [--data DIRECTORY] --to NEWDIRECTORY

      stated
          Serve this user's values on this user's socket, until Ctrl-C or SIGTERM.

      stated --socket /tmp/try.sock --memory
          Try it out: nothing is written to disk, and all is gone when it stops.

      stated --socket /srv/app/state.sock --socket-mode 0660 --data /srv/app/state
          One instance for one application; its group may connect too.

      stated --check
          Check this user's values: structure, checksums, order, and the chain of each key's
          changes. Nothing is changed, and a daemon that serves them goes on.

      stated --salvage --data /srv/app/state --to /srv/app/salvaged
          Copy what is whole of a store that is refused into a new one, and print what is lost;
          then start with --data /srv/app/salvaged, or move the directories.

    Talk to it, from another terminal:

      statectl set audio/volume 0.7
      statectl watch audio/
      redis-cli -s /tmp/try.sock get audio/volume

    Options:
      --socket PATH       Listen here. Without it: a socket that was inherited (LISTEN_FDS),
                          else $STATED_SOCKET, else $XDG_RUNTIME_DIR/stated/stated.sock, else
                          $XDG_STATE_HOME/stated/stated.sock (~/.local/state);
                          for root /run/stated/stated.sock. 107 bytes at most.
      --data DIRECTORY    Keep the values here. Without it: $STATE_DIRECTORY, else
                          $XDG_STATE_HOME/stated (~/.local/state); for root /var/lib/stated.
      --memory            Keep the values in memory only.
      --socket-mode MODE  Permission bits of the socket, in octal; 0600 without it.
      --check             Print what is wrong with the store, 100 lines at most, and a summary;
                          5 where anything is. It takes no ownership.
      --salvage           Copy every row that matches its checksum, with its revision. Of a key
                          whose newest row is lost the newest whole row is what is served, or
                          none: the list says which rows are lost, and their keys as far as they
                          are known. Clients see another store (a new epoch, revisions 2^32
                          higher), for what was lost may have been told. Exits 0 where every row
                          was whole, 5 where one is lost.
      --to NEWDIRECTORY   Where --salvage puts the new store. It is always another directory and
                          never one with a store in it: the damaged one stays as it is, for
                          another try and as evidence.
      --help, --version   Print this, or the version.

    Exit codes: 0 stopped by a signal, 2 the configuration makes no sense, 3 another process
    owns the socket or the data, 5 the storage cannot be used, or is not whole.

    """
