package dev.gpd.consent;

import java.util.List;

/**
 * What a person says about purposes.
 *
 * @param policyVersion of the text that was shown; null for the current one
 * @param gpc true opts out of every purpose that heeds it; false ends that for the purposes of this grant alone; null changes nothing
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
