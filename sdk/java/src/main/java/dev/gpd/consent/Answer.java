package dev.gpd.consent;

/**
 * Of a status that was expected.
 *
 * @param body null when it was larger than is read
 * @param requestId or null
 */
record Answer(int status, byte[] body, String requestId) {}
