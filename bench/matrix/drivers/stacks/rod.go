// rod, the driver of the developer protocol for Go.
package main

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/launcher"
	"github.com/go-rod/rod/lib/launcher/flags"
)

func main() {
	start := launcher.New().Bin(os.Getenv("STACK_CHROMIUM")).UserDataDir(os.Getenv("STACK_PROFILE")).
		Leakless(false).Headless(os.Getenv("STACK_MODE") == "headless")
	var given []string
	_ = json.Unmarshal([]byte(os.Getenv("STACK_FLAGS")), &given)
	for _, flag := range given {
		name, value, found := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if found {
			start = start.Set(flags.Flag(name), value)
		} else {
			start = start.Set(flags.Flag(name))
		}
	}
	browser := rod.New().ControlURL(start.MustLaunch()).MustConnect()
	browser.MustPage(os.Getenv("STACK_URL")).MustElement("#press").MustClick()
	time.Sleep(time.Minute)
}
