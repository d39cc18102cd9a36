// An interceptor for Spring MVC 6: requests that reach the handlers behind it may be processed. Copy it into your application and register it:
//
//   @Configuration
//   class Guards implements WebMvcConfigurer {
//     private final Consent consent = ConsentClient.fromEnv();
//
//     @Override
//     public void addInterceptors(InterceptorRegistry registry) {
//       registry.addInterceptor(new RequireConsent(consent, "newsletter", HttpServletRequest::getRemoteUser))
//           .addPathPatterns("/offers/**");
//     }
//   }
import dev.gpd.consent.Consent;
import dev.gpd.consent.Decision;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.function.Function;
import org.springframework.web.servlet.HandlerInterceptor;

/** Lets a request pass if the person granted the purpose; otherwise 403, or 401 if nobody is signed in. */
public final class RequireConsent implements HandlerInterceptor {
  private final Consent consent;
  private final String purpose;
  private final Function<HttpServletRequest, String> principalOf;

  public RequireConsent(Consent consent, String purpose, Function<HttpServletRequest, String> principalOf) {
    this.consent = consent;
    this.purpose = purpose;
    this.principalOf = principalOf;
  }

  private static boolean refuse(HttpServletResponse response, int status, String json) throws IOException {
    response.setStatus(status);
    response.setContentType("application/json");
    response.getWriter().write(json);
    return false;
  }

  /** An exception, such as for a wrong key, reaches Spring's error handling, so nothing is processed either. */
  @Override
  public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler) throws IOException {
    String principalId = principalOf.apply(request);
    if (principalId == null || principalId.isEmpty()) {
      return refuse(response, 401, "{\"error\":\"sign-in-needed\"}");
    }
    Decision decision = consent.canProcess(principalId, purpose);
    return decision.allowed() || refuse(response, 403, "{\"error\":\"consent-needed\"}");
  }
}
