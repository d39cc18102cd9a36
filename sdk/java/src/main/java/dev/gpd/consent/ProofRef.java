package dev.gpd.consent;

/**
 * The place of an entry in the tenant's log.
 *
 * @param hash 64 lower-case hex digits: SHA-256(0x00 || entry)
 */
public record ProofRef(long seq, String hash) {}
