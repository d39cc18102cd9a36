package dev.gpd.consent;

import java.util.Map;

/**
 * A verified delivery of gpd.
 *
 * @param id equal for every delivery of one event
 */
public record WebhookEvent(String id, String type, String timestamp, long seq, Map<String, Object> data) {}
