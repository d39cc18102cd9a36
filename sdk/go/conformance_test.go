package consent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// servers is the line that serve.mjs prints.
type servers struct {
	URL       string `json:"url"`
	Stub      string `json:"stub"`
	VKey      string `json:"vkey"`
	RequestID string `json:"requestId"`
	Variables map[string]string
	Keys      map[string]string `json:"keys"`
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
	file := readShared(t, "cases.json")
	if problems := problemsOf(t, file); len(problems) > 0 {
		t.Fatal(strings.Join(problems, "\n"))
	}
	of := startServers(t)
	cases := file["cases"].([]any)
	passed, told := 0, ""
	for _, item := range cases {
		one := item.(object)
		if t.Run(one["name"].(string), func(t *testing.T) { runCase(t, one, of) }) {
			passed++
			told += "gpd-case go passed " + one["name"].(string) + "\n"
		} else {
			told += "gpd-case go failed " + one["name"].(string) + "\n"
		}
	}
	report(t, told, fmt.Sprintf("gpd-conformance go %d/%d\n", passed, len(cases)))
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

func TestRunnerRefusesUnknownKeys(t *testing.T) {
	first := func(file object) object { return file["cases"].([]any)[0].(object) }
	step := func(file object) object { return first(file)["steps"].([]any)[0].(object) }
	places := map[string]func(object) object{
		"the file":       func(file object) object { return file },
		"a case":         first,
		"a step":         step,
		"an expectation": func(file object) object { return step(file)["expect"].(object) },
	}
	for name, place := range places {
		file := readShared(t, "cases.json")
		place(file)["surprise"] = 1.0
		if problems := strings.Join(problemsOf(t, file), "\n"); !strings.Contains(problems, "surprise") {
			t.Errorf("%s: an unknown key was taken: %s", name, problems)
		}
	}
}

func TestRunnerRefusesUnknownMatchersCallsAndNames(t *testing.T) {
	attempts := map[string]func(){
		"a matcher": func() { difference("a", object{"$like": "a"}, "result", false) },
		"a call":    func() { (&run{}).call(nil, "guess", object{}, nil) },
		"a name":    func() { substitute("${nobody}", object{}) },
	}
	for name, attempt := range attempts {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s that is not known was taken", name)
				}
			}()
			attempt()
		}()
	}
}
