package dev.gpd.consent;

/**
 * Defines or changes a purpose. Null takes the default of gpd.
 *
 * @param gpc {@code opt-out}, {@code ask} or {@code ignore}
 * @param banner false: the banner never asks for it
 * @param material false: the change asks nobody again
 */
public record PurposeDefinition(
    String id, String title, String description, String lawfulBasis, String gpc, Long ttlDays, Boolean banner, Boolean material) {
  public static PurposeDefinition of(String id, String title) {
    return new PurposeDefinition(id, title, null, null, null, null, null, null);
  }
}
