package dev.gpd.consent;

import java.util.List;

/**
 * What a person says about purposes.
 *
 * @param policyVersion of the text that was shown; null for the current one
 * @param gpc whether Global Privacy Control was on; null leaves what is known
 */
public record ConsentWrite(String principalId, List<String> purposes, Long policyVersion, Boolean gpc) {
  public static ConsentWrite of(String principalId, String... purposes) {
    return new ConsentWrite(principalId, List.of(purposes), null, null);
  }

  public ConsentWrite withPolicyVersion(long version) {
    return new ConsentWrite(principalId, purposes, version, gpc);
  }

  public ConsentWrite withGpc(boolean on) {
    return new ConsentWrite(principalId, purposes, policyVersion, on);
  }
}
