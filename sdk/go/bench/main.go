// What the client adds to a bare net/http client. Prints one line of JSON for `npm run bench -- sdk`: the p50 of each round.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sort"
	"strconv"
	"time"

	consent "gpd.dev/consent-go"
)

type ask func(principalID string) (bool, error)

func bare(url, key string) ask {
	client := &http.Client{}
	return func(principalID string) (bool, error) {
		body, err := json.Marshal(map[string]string{"principalId": principalID, "purpose": "newsletter"})
		if err != nil {
			return false, err
		}
		request, err := http.NewRequest(http.MethodPost, url+"/v1/consent/can-process", bytes.NewReader(body))
		if err != nil {
			return false, err
		}
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return false, err
		}
		var decision struct{ Allowed bool }
		err = json.Unmarshal(text, &decision)
		return decision.Allowed, err
	}
}

func sdk(client *consent.Client) ask {
	return func(principalID string) (bool, error) {
		return client.IsAllowed(context.Background(), consent.Check{PrincipalID: principalID, Purpose: "newsletter"})
	}
}

func p50(call ask, count int) (float64, error) {
	times := make([]float64, count)
	for i := range times {
		before := time.Now()
		allowed, err := call("person-" + strconv.Itoa(i))
		times[i] = float64(time.Since(before)) / float64(time.Microsecond)
		if err != nil {
			return 0, err
		}
		if !allowed {
			return 0, errors.New("it was not allowed")
		}
	}
	sort.Float64s(times)
	return times[count/2], nil
}

func number(name string) int {
	value, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		log.Fatalf("%s is no number", name)
	}
	return value
}

func main() {
	client, err := consent.FromEnv(consent.Options{})
	if err != nil {
		log.Fatal(err)
	}
	calls := []ask{sdk(client), bare(os.Getenv("GPD_CONSENT_URL"), os.Getenv("GPD_CONSENT_KEY"))}
	told := [2][]float64{}
	for round := -1; round < number("BENCH_ROUNDS"); round++ {
		for i, call := range calls {
			count := number("BENCH_COUNT")
			if round < 0 {
				count = number("BENCH_WARM_UP")
			}
			value, err := p50(call, count)
			if err != nil {
				log.Fatal(err)
			}
			if round >= 0 {
				told[i] = append(told[i], value)
			}
		}
	}
	text, err := json.Marshal(map[string][]float64{"sdk": told[0], "bare": told[1]})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
}
