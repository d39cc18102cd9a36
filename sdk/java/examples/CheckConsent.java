// In the folder of the pom, after `mvn package` (gson.jar is in your Maven repository):
// GPD_CONSENT_URL=http://127.0.0.1:8080 GPD_CONSENT_KEY=gpd_sk_… \
//   java -cp target/consent-0.1.0.jar:gson.jar examples/CheckConsent.java PRINCIPAL PURPOSE
import dev.gpd.consent.ConsentClient;
import dev.gpd.consent.ConsentException;
import dev.gpd.consent.ConsentWrite;
import dev.gpd.consent.Decision;

class CheckConsent {
  public static void main(String[] args) {
    String principalId = args.length > 1 ? args[0] : "u-1";
    String purpose = args.length > 1 ? args[1] : "device-identification";
    try (ConsentClient consent = ConsentClient.fromEnv()) {
      Decision before = consent.canProcess(principalId, purpose);
      System.out.println("before: " + before.allowed() + " " + before.reason());
      consent.grant(ConsentWrite.of(principalId, purpose));
      System.out.println("granted: " + consent.isAllowed(principalId, purpose));
      consent.withdraw(ConsentWrite.of(principalId, purpose));
      System.out.println("withdrawn: " + consent.isAllowed(principalId, purpose));
    } catch (ConsentException error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }
}
