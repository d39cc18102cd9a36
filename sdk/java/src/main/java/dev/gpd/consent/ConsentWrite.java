package dev.gpd.consent;

import java.util.List;

/**
 * A person's choice about purposes.
 *
 * @param policyVersion version of the text that was shown; null for the current one
 * @param gpc true opts out of every purpose that honours it; false ends that for the purposes of this grant only; null changes nothing
 * @param overGpc a specific consent despite the signal, only in a grant, with {@code gpc} true and one purpose whose policy is ask; null for none
 */
public record ConsentWrite(String principalId, List<String> purposes, Long policyVersion, Boolean gpc, Boolean overGpc) {
  public ConsentWrite(String principalId, List<String> purposes, Long policyVersion, Boolean gpc) {
    this(principalId, purposes, policyVersion, gpc, null);
  }

  public static ConsentWrite of(String principalId, String... purposes) {
    return new ConsentWrite(principalId, List.of(purposes), null, null, null);
  }

  public ConsentWrite withPolicyVersion(long version) {
    return new ConsentWrite(principalId, purposes, version, gpc, overGpc);
  }

  public ConsentWrite withGpc(boolean on) {
    return new ConsentWrite(principalId, purposes, policyVersion, on, overGpc);
  }

  public ConsentWrite withOverGpc(boolean on) {
    return new ConsentWrite(principalId, purposes, policyVersion, gpc, on);
  }
}
