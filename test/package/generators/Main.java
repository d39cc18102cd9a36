import com.google.gson.Gson;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ConsentApi;
import org.openapitools.client.model.ConsentCheck;
import org.openapitools.client.model.ConsentGrant;
import org.openapitools.client.model.ConsentWrite;
import org.openapitools.client.model.ErrorBody;

class Main {
  static ConsentApi api;

  static boolean isAllowed() throws ApiException {
    return api.checkConsent(new ConsentCheck().principalId("u-java").purpose("newsletter")).getAllowed();
  }

  static ConsentGrant grantOf(String purpose) {
    return new ConsentGrant().principalId("u-java").addPurposesItem(purpose);
  }

  public static void main(String[] args) throws ApiException {
    var client = new ApiClient().setBasePath(args[0]);
    client.setBearerToken(args[1]);
    api = new ConsentApi(client);
    var before = isAllowed();
    var written = api.grantConsent(grantOf("newsletter"), "order-java");
    var granted = isAllowed();
    api.withdrawConsent(new ConsentWrite().principalId("u-java").addPurposesItem("newsletter"), null);
    try {
      api.grantConsent(grantOf("no-such-purpose"), null);
    } catch (ApiException refusal) {
      var error = new Gson().fromJson(refusal.getResponseBody(), ErrorBody.class).getError();
      var told = List.of(before, granted, written.getSeq() > 0, isAllowed(), refusal.getCode(), error);
      System.out.println(new Gson().toJson(told));
    }
  }
}
