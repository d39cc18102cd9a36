package dev.gpd.consent;

import java.util.Map;

/**
 * A signed copy of an entry, for the person it is about.
 *
 * @param jws compact, EdDSA under the key of the tenant's log
 */
public record Receipt(Map<String, Object> receipt, String jws, Map<String, Object> jwk) {}
