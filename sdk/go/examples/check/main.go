// GPD_CONSENT_URL=http://127.0.0.1:8080 GPD_CONSENT_KEY=gpd_sk_… go run ./examples/check PRINCIPAL PURPOSE
package main

import (
	"context"
	"fmt"
	"os"

	consent "gpd.dev/consent-go"
)

func run(ctx context.Context, principalID, purpose string) error {
	client, err := consent.FromEnv(consent.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	check := consent.Check{PrincipalID: principalID, Purpose: purpose}
	write := consent.Write{PrincipalID: principalID, Purposes: []string{purpose}}

	before, err := client.CanProcess(ctx, check)
	if err != nil {
		return err
	}
	fmt.Println("before:", before.Allowed, before.Reason)
	if _, err := client.Grant(ctx, write); err != nil {
		return err
	}
	granted, err := client.IsAllowed(ctx, check)
	if err != nil {
		return err
	}
	fmt.Println("granted:", granted)
	if _, err := client.Withdraw(ctx, write); err != nil {
		return err
	}
	withdrawn, err := client.IsAllowed(ctx, check)
	if err != nil {
		return err
	}
	fmt.Println("withdrawn:", withdrawn)
	return nil
}

func main() {
	principalID, purpose := "u-1", "device-identification"
	if len(os.Args) > 2 {
		principalID, purpose = os.Args[1], os.Args[2]
	}
	if err := run(context.Background(), principalID, purpose); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
