// chromedp, the other driver of the developer protocol for Go.
package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

func main() {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(os.Getenv("STACK_CHROMIUM")),
		chromedp.UserDataDir(os.Getenv("STACK_PROFILE")),
		chromedp.Flag("headless", os.Getenv("STACK_MODE") == "headless"))
	var given []string
	_ = json.Unmarshal([]byte(os.Getenv("STACK_FLAGS")), &given)
	for _, flag := range given {
		name, value, found := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if found {
			options = append(options, chromedp.Flag(name, value))
		} else {
			options = append(options, chromedp.Flag(name, true))
		}
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	tab, stop := chromedp.NewContext(allocator)
	defer stop()
	_ = chromedp.Run(tab,
		chromedp.Navigate(os.Getenv("STACK_URL")),
		chromedp.Click("#press", chromedp.ByQuery))
	time.Sleep(time.Minute)
}
