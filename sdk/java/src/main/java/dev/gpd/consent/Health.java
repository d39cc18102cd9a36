package dev.gpd.consent;

/** The answer of a running server; the key is not checked. */
public record Health(String status, String version) {}
