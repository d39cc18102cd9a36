package dev.gpd.consent;

/** That the server answers; says nothing about the key. */
public record Health(String status, String version) {}
