/** Asks a gpd server whether personal data may be processed, records people's choices, verifies proofs offline. */
module dev.gpd.consent {
  requires transitive java.net.http;
  requires com.google.gson;

  exports dev.gpd.consent;
}
