package dev.gpd.consent;

/**
 * What became of a decision, as it is stored.
 *
 * @param outcome {@code fraud}, {@code chargeback}, {@code passed-step-up}, {@code false-alarm} or {@code other}
 * @param at when it became known: ISO time
 */
public record ReportedOutcome(String requestId, String outcome, String at) {}
