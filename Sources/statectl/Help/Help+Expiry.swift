// The help of the verbs that are about the time of keys.
extension Help {
    static let expire = """
        Makes a key expire after TIME, whatever its time was before: then it is deleted, in a commit
        by 'expiry'. The value stays the same. TIME is numbers with units, such as 500ms, 30s, 5m,
        1h30m or 7d. If the key is absent, it exits 1. Setting the key afterwards without --ttl ends
        this: then the rule of the key decides.

        examples:
          statectl set session/7 open --ttl 30s
          statectl expire session/7 5m
          statectl expire lease/host 30s || echo "the lease is over"

        """

    static let timeLeft = """
        Prints how long a key has left, in whole seconds, rounded up: 1m30s; below a second, 350ms;
        or never. --json prints milliseconds, or null. If the key is absent, prints nothing and
        exits 1. 'statectl get KEY --long' prints the date.

        examples:
          statectl ttl session/7
          statectl ttl session/7 --json

        """

    static let persist = """
        Makes a key never expire. The value stays the same. If the key is absent, it exits 1.

        examples:
          statectl persist session/7

        """
}
