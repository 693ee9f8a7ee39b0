/// What `stated --help` prints.
let helpText = """
    stated keeps values that outlive the programs that set them, and serves them on a Unix socket.

    Usage: stated [--socket PATH] [--data DIRECTORY | --memory] [--socket-mode MODE]

      stated
          Serve this user's values on this user's socket, until Ctrl-C or SIGTERM.

      stated --socket /tmp/try.sock --memory
          Try it out: nothing is written to disk, and all is gone when it stops.

      stated --socket /srv/app/state.sock --socket-mode 0660 --data /srv/app/state
          One instance for one application; its group may connect too.

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
      --help, --version   Print this, or the version.

    Exit codes: 0 stopped by a signal, 2 the configuration makes no sense, 3 another process
    owns the socket or the data, 5 the storage cannot be used.

    """
