package dev.gpd.consent;

/**
 * Of the status that was expected.
 *
 * @param body null when it was larger than is read
 * @param requestId or null
 */
record Answer(byte[] body, String requestId) {}
