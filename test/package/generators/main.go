package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	gpd "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	config := gpd.NewConfiguration()
	config.Servers = gpd.ServerConfigurations{{URL: os.Args[1]}}
	api := gpd.NewAPIClient(config).ConsentAPI
	ctx := context.WithValue(context.Background(), gpd.ContextAccessToken, os.Args[2])
	isAllowed := func() bool {
		answer, _, err := api.CheckConsent(ctx).ConsentCheck(*gpd.NewConsentCheck("u-go", "newsletter")).Execute()
		if err != nil {
			panic(err)
		}
		return answer.Allowed
	}
	before := isAllowed()
	written, _, err := api.GrantConsent(ctx).ConsentGrant(*gpd.NewConsentGrant("u-go", []string{"newsletter"})).IdempotencyKey("order-go").Execute()
	if err != nil {
		panic(err)
	}
	granted := isAllowed()
	if _, _, err := api.WithdrawConsent(ctx).ConsentWrite(*gpd.NewConsentWrite("u-go", []string{"newsletter"})).Execute(); err != nil {
		panic(err)
	}
	_, response, err := api.GrantConsent(ctx).ConsentGrant(*gpd.NewConsentGrant("u-go", []string{"no-such-purpose"})).Execute()
	var refusal *gpd.GenericOpenAPIError
	if !errors.As(err, &refusal) {
		panic("no refusal")
	}
	body := refusal.Model().(gpd.ErrorBody)
	_ = json.NewEncoder(os.Stdout).Encode([]any{before, granted, written.Seq > 0, isAllowed(), response.StatusCode, body.Error})
}
