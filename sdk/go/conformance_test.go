package consent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// servers is the line that serve.mjs prints.
type servers struct {
	URL  string `json:"url"`
	Runs string
	VKey string            `json:"vkey"`
	Keys map[string]string `json:"keys"`
}

// startServers starts the servers, unless GPD_CONFORMANCE names running ones.
func startServers(t *testing.T) servers {
	t.Helper()
	told := os.Getenv("GPD_CONFORMANCE")
	if told == "" {
		command := exec.Command("node", filepath.Join("..", "conformance", "serve.mjs"))
		command.Stderr = os.Stderr
		input, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			input.Close()
			command.Wait()
		})
		if told, err = bufio.NewReader(output).ReadString('\n'); err != nil {
			t.Fatal("serve.mjs ended before it told its addresses")
		}
	}
	var of servers
	if err := json.Unmarshal([]byte(told), &of); err != nil {
		t.Fatal(err)
	}
	return of
}

func TestConformance(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "conformance", "cases.json"))
	var file struct{ Cases []struct{ Name string } }
	if err != nil || json.Unmarshal(text, &file) != nil {
		t.Fatal("cases.json cannot be read", err)
	}
	of := startServers(t)
	passed, told := 0, ""
	for _, one := range file.Cases {
		outcome := "failed"
		if t.Run(one.Name, func(t *testing.T) { runCase(t, one.Name, of) }) {
			passed++
			outcome = "passed"
		}
		told += "gpd-case go " + outcome + " " + one.Name + "\n"
	}
	report(t, told, fmt.Sprintf("gpd-conformance go %d/%d\n", passed, len(file.Cases)))
}

// report writes the line that bin/sdks.mjs compares between the languages.
func report(t *testing.T, told, line string) {
	t.Helper()
	fmt.Print(line)
	path := os.Getenv("GPD_CONFORMANCE_REPORT")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(told + line); err != nil {
		t.Fatal(err)
	}
}

func TestRunnerRefusesUnknownCalls(t *testing.T) {
	problem, _ := (&run{}).perform(step{Call: "guess"})["problem"].(string)
	if problem != "there is no call guess" {
		t.Error(problem)
	}
}
