package dev.gpd.consent;

/**
 * An answer with an expected status.
 *
 * @param body null if it was too large
 * @param requestId may be null
 */
record Answer(int status, byte[] body, String requestId) {}
