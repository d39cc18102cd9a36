// A servlet filter (Jakarta EE, Spring Boot): hands on who signed a request as its attribute "gpd.agent". Copy it into your application:
//
//   @Bean
//   Filter agents(Consent consent) {
//     return new AgentFilter(consent, "https://shop.example", answer -> !answer.status().equals("invalid"));
//   }
import dev.gpd.consent.AgentAnswer;
import dev.gpd.consent.AgentRequest;
import dev.gpd.consent.Consent;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Collections;
import java.util.function.Predicate;

/** Answers 403 where the predicate says no. The refused request is not told why. */
public final class AgentFilter extends HttpFilter {
  private static final long serialVersionUID = 1L;

  private final transient Consent consent;
  private final String origin;
  private final transient Predicate<AgentAnswer> allows;

  public AgentFilter(Consent consent, String origin, Predicate<AgentAnswer> allows) {
    this.consent = consent;
    this.origin = origin;
    this.allows = allows;
  }

  private static String headerOf(HttpServletRequest request, String name) {
    String values = String.join(", ", Collections.list(request.getHeaders(name)));
    return values.isEmpty() ? null : values;
  }

  @Override
  protected void doFilter(HttpServletRequest request, HttpServletResponse response, FilterChain chain) throws IOException, ServletException {
    String query = request.getQueryString();
    String url = origin + request.getRequestURI() + (query == null ? "" : "?" + query);
    AgentAnswer answer = consent.agent(AgentRequest.of(request.getMethod(), url, name -> headerOf(request, name)));
    request.setAttribute("gpd.agent", answer);
    if (allows.test(answer)) {
      chain.doFilter(request, response);
      return;
    }
    response.setStatus(403);
    response.setContentType("application/json");
    response.getWriter().write("{\"error\":\"agent-refused\"}");
  }
}
