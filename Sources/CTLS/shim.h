#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/// What are macros in OpenSSL, which Swift cannot call.

static inline int ctls_require_tls12(SSL_CTX *context) { return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION); }

static inline int ctls_set_server_name(SSL *connection, const char *name) { return SSL_set_tlsext_host_name(connection, name); }

/// A partial write may be repeated from another address: the bytes that wait move.
static inline void ctls_allow_moving_writes(SSL *connection) {
    SSL_set_mode(connection, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}
