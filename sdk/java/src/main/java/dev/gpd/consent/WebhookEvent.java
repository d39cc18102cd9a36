package dev.gpd.consent;

import java.util.Map;

/**
 * A delivery of gpd that is true.
 *
 * @param id the same for every delivery of one event
 */
public record WebhookEvent(String id, String type, String timestamp, long seq, Map<String, Object> data) {}
