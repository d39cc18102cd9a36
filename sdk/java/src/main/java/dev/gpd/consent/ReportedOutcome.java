package dev.gpd.consent;

/**
 * The stored outcome of a decision.
 *
 * @param outcome {@code fraud}, {@code chargeback}, {@code passed-step-up}, {@code false-alarm} or {@code other}
 * @param at ISO time when it became known
 */
public record ReportedOutcome(String requestId, String outcome, String at) {}
