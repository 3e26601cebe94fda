/* What the plugin's TLS differs in from the configuration that Mbed TLS comes with. */

/* Random bytes are the kernel's: see mbedtls_psa_external_get_random in tls.c. */
#define MBEDTLS_PSA_CRYPTO_EXTERNAL_RNG
#undef MBEDTLS_ENTROPY_C
#undef MBEDTLS_CTR_DRBG_C
#undef MBEDTLS_HMAC_DRBG_C
#undef MBEDTLS_ECDSA_DETERMINISTIC

/* No files: certificates come as texts, keys are not stored. */
#undef MBEDTLS_FS_IO
#undef MBEDTLS_PSA_CRYPTO_STORAGE_C
#undef MBEDTLS_PSA_ITS_FILE_C

/* Certificates are read by a function of the host, which takes the place of this one: see trust.c. */
#ifndef HOST_PARSES_CERTIFICATES
#pragma weak mbedtls_x509_crt_parse_der
#endif

/* A client alone, over a stream. */
#undef MBEDTLS_SSL_SRV_C
#undef MBEDTLS_SSL_CACHE_C
#undef MBEDTLS_SSL_COOKIE_C
#undef MBEDTLS_SSL_TICKET_C
#undef MBEDTLS_SSL_PROTO_DTLS
#undef MBEDTLS_SSL_DTLS_CONNECTION_ID
#undef MBEDTLS_SSL_DTLS_CONNECTION_ID_COMPAT
#undef MBEDTLS_SSL_DTLS_ANTI_REPLAY
#undef MBEDTLS_SSL_DTLS_HELLO_VERIFY
#undef MBEDTLS_SSL_DTLS_CLIENT_PORT_REUSE
#undef MBEDTLS_SSL_RENEGOTIATION
#undef MBEDTLS_NET_C
#undef MBEDTLS_TIMING_C
#undef MBEDTLS_DEBUG_C
#undef MBEDTLS_SELF_TEST
